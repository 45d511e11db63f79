package requirements

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// TestSeedS4 tests the document on a timeout strategy in three layers: runs (runs_test.go),
// executions (this file), and synchronization of branches (branches_test.go).
func TestSeedS4(t *testing.T) {
	for _, claim := range []struct {
		name string
		test func(*testing.T)
	}{
		{"S4.2 S4.3 S4.9 the timeout of a run is that of the call or its definition, from its creation, or none", deadlineOfARun},
		{"S4.45 metrics tell which kinds time out, how close the others come, and what hangs", alertsAndTuning},
		{"S4.4 a run times out after its deadline, not at it", runIsStrict},
		{"S4.5 S4.6 S4.7 S4.35 all tasks of a run time out with it; the policy decides its error, and what its owner sees", policiesOfARun},
		{"S4.8 a run in a loop and a run that multiplies end at their deadline", runawaysAreStopped},
		{"S4.9 an hour can be a default of a kind", hourIsASetting},
		{"S4.10 S4.29 a child with 600000ms of its own gets the 1800000ms of its caller", callersTimeoutWins},
		{"S4.11 the call takes precedence over the kind, and the kind over the child's own: all combinations", precedenceOfTimeouts},
		{"S4.28 S4.30 a run of 1h with nodes of 5 min, of 10 min, and with the time of its kind", exampleOfAHierarchy},
		{"S4.1 S4.33 S4.38 if all three layers time out at one instant the run's counts, and no other emits an event", runGoesFirst},
		{"S4.39 S4.46 a child does not inherit its owner's remaining time, unless it has a budget", childHasItsOwnTime},
		{"S4.2 S4.3 S4.9 a run has the timeout_ms of its definition, none for null, and an hour if it says nothing", timesOfDefinitions},
		{"S4.1 S4.5 S4.6 S4.8 S4.44 a definition A→B→C→A is stopped by its hour, as a timeout of the workflow", circleOfADefinition},
		{"S4.10 a node's 1800000 is the time of the definition with 600000 that it calls", nodeOverChildDefinition},

		{"S4.12 timeout and on_timeout come from the call, else from the kind; else they are none and fail", policyOfCallKindOrNone},
		{"S4.13 S4.14 S4.15 the limit of an execution begins with it, is strict, and ends it as a timeout", limitOfAnExecution},
		{"S4.16 fail is the default: the execution's timeout fails the task", failIsTheDefault},
		{"S4.17 retry puts the task back to PENDING, counts, and requires max_retries", retryRequiresALimit},
		{"S4.19 there is no default timeout", noDefaultTimeout},
		{"S4.36 maxRetries 3 is 4 executions, then timed out with the count", fourExecutions},
		{"S4.40 a task that is PENDING past its timeout fails, even if on_timeout is retry", stuckIsNotRetried},
		{"S4.46 one warning at 80 %, and time to clean up before the end", warningAndGrace},

		{"S4.20 S4.23 S4.24 S4.27 S4.48 all, any and m of n, with and without a timeout", strategies},
		{"S4.21 S4.22 S4.31 S4.34 the limit begins with the first branch to arrive, and is strict", firstArrivalStartsTheClock},
		{"S4.25 S4.26 S4.41 the computed default: 4500 for 3 of 1000ms, 1800000 at most", computedTimeout},
		{"S4.37 the error texts of a timeout, with and without a completed branch", textsOfATimeout},
		{"S4.42 a late branch continues, and its output is dropped", lateBranchesAreDropped},
		{"S4.43 nested synchronization points have limits of their own", nestedMeetings},
		{"S4.44 the events of timeouts in all three layers", eventsOfTheLayers},
	} {
		t.Run(claim.name, func(t *testing.T) {
			t.Parallel()
			claim.test(t)
		})
	}
}

func policyOfCallKindOrNone(t *testing.T) {
	s := frozen(t)
	if err := s.q.DefineKind(t.Context(), "defined", queue.Defaults{AttemptTimeout: time.Second, MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim   string
		task    queue.Task
		after   time.Duration
		outcome queue.Status
	}{
		{"neither call nor kind has a timeout", queue.Task{Kind: "k"}, time.Hour, queue.Running},
		{"the call has a timeout and no policy: fail", queue.Task{Kind: "k", AttemptTimeout: time.Second}, 1001 * time.Millisecond, queue.Failed},
		{"the call has a policy", queue.Task{Kind: "k", AttemptTimeout: time.Second, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, OnTimeout: queue.OnTimeoutRetry}, 1001 * time.Millisecond, queue.Pending},
		{"the kind has both", queue.Task{Kind: "defined"}, 1001 * time.Millisecond, queue.Pending},
		{"the call's timeout takes precedence", queue.Task{Kind: "defined", AttemptTimeout: time.Minute}, 1001 * time.Millisecond, queue.Running},
		{"the call's policy takes precedence", queue.Task{Kind: "defined", OnTimeout: queue.OnTimeoutFail}, 1001 * time.Millisecond, queue.Failed},
		{"the call has none", queue.Task{Kind: "defined", AttemptTimeout: queue.None}, time.Hour, queue.Running},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id := s.enqueue(c.task)
			s.claim()
			s.advance(c.after)
			s.sweep()
			if r := s.record(id); r.Status != c.outcome {
				t.Errorf("after %v it is %s, want %s", c.after, r.Status, c.outcome)
			}
			if _, err := s.q.Cancel(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func limitOfAnExecution(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", AttemptTimeout: time.Second})
	s.advance(time.Hour) // the time in line does not count
	if c := s.claim(); c.AttemptDeadline.Sub(c.Now) != time.Second {
		t.Errorf("the execution has %v, want 1s", c.AttemptDeadline.Sub(c.Now))
	}
	s.advance(time.Second)
	s.sweep()
	if r := s.record(id); r.Status != queue.Running || r.Overdue {
		t.Errorf("at its limit it is %s, overdue %v", r.Status, r.Overdue)
	}
	s.advance(time.Millisecond)
	if !s.record(id).Overdue {
		t.Error("one ms past its limit it is not overdue")
	}
	s.sweep()
	if r := s.record(id); r.Phase() != "Timeout" || r.Reason != "timeout" || r.TimeoutType != "attempt" {
		t.Errorf("it is %s (%s, %s)", r.Phase(), r.Reason, r.TimeoutType)
	}
}

func failIsTheDefault(t *testing.T) {
	r, n := running(t).attempts(queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, AttemptTimeout: 30 * time.Millisecond}, untilTold)
	if n != 1 || r.Status != queue.Failed || r.Error != fixedError {
		t.Errorf("%d executions, then %s: %q; want 1, FAILED: %q", n, r.Status, r.Error, fixedError)
	}
}

func retryRequiresALimit(t *testing.T) {
	s := frozen(t)
	_, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "k", AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry})
	if !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("retry without max_retries: %v, want ErrInvalid", err)
	}
	id := s.enqueue(queue.Task{Kind: "k", AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
	s.claim()
	s.advance(1001 * time.Millisecond)
	s.sweep()
	if r := s.record(id); r.Status != queue.Pending || r.Retries != 1 || !r.LimitAt.IsZero() {
		t.Errorf("it is %s with %d retries, its limit %v; want PENDING, 1, none", r.Status, r.Retries, r.LimitAt)
	}
}

func noDefaultTimeout(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k"})
	c := s.claim()
	s.advance(365 * 24 * time.Hour)
	s.sweep()
	if !c.Deadline.IsZero() || !c.AttemptDeadline.IsZero() || s.record(id).TimedOut {
		t.Errorf("an execution without a timeout has the limits %v and %v", c.Deadline, c.AttemptDeadline)
	}
}

func fourExecutions(t *testing.T) {
	r, n := running(t).attempts(queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, AttemptTimeout: 30 * time.Millisecond, OnTimeout: queue.OnTimeoutRetry}, untilTold)
	if n != 4 || r.Phase() != "Timeout" || r.Retries != 3 {
		t.Errorf("%d executions, then %s after %d retries; want 4, Timeout after 3", n, r.Phase(), r.Retries)
	}
}

func stuckIsNotRetried(t *testing.T) {
	for claim, task := range map[string]queue.Task{
		"its deadline":    {Timeout: time.Second},
		"its queue limit": {QueueTimeout: time.Second},
	} {
		t.Run(claim, func(t *testing.T) {
			s := frozen(t)
			task.Kind, task.MaxRetries, task.AttemptTimeout, task.OnTimeout = "k", 3, time.Second, queue.OnTimeoutRetry
			id := s.enqueue(task)
			s.advance(1001 * time.Millisecond)
			s.sweep()
			if r := s.record(id); r.Status != queue.Failed || r.Phase() != "Timeout" || r.Retries != 0 || r.Epoch != 0 {
				t.Errorf("it is %s %s after %d retries and %d executions, want FAILED Timeout, 0 and 0", r.Status, r.Phase(), r.Retries, r.Epoch)
			}
		})
	}
}

// handlerIsWarned checks that a running handler gets the warning, then that its context ends, with
// time to clean up before its deadline.
func handlerIsWarned(t *testing.T) {
	s := running(t)
	var warned, stopped time.Time
	var ends time.Time // the context, as the worker tells the handler: a busy machine may stop it later
	_, stop := s.work(worker.Config{}, func(ctx context.Context) error {
		ends, _ = ctx.Deadline()
		<-worker.DeadlineNear(ctx)
		warned = time.Now()
		<-ctx.Done()
		stopped = time.Now()
		return context.Cause(ctx)
	})
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 3 * time.Second, WarnAt: 0.2, TimeoutGrace: time.Second})
	_, err := s.result(id)
	stop()
	var late *queue.TaskTimedOutError
	if !errors.As(err, &late) || late.Type != queue.TimeoutExecution {
		t.Fatalf("its result is %v, want a timeout of the execution", err)
	}
	deadline := s.record(id).Deadline
	// The worker estimates the clock of Redis, so the two instants are not those of one clock.
	if left := deadline.Sub(ends); !warned.Before(stopped) || left < 500*time.Millisecond || stopped.Before(ends) {
		t.Errorf("it was warned %v, stopped %v and to be stopped %v before its deadline, want a second", deadline.Sub(warned), deadline.Sub(stopped), left)
	}
}

func warningAndGrace(t *testing.T) {
	s := frozen(t)
	s.enqueue(queue.Task{Kind: "k", Timeout: 10 * time.Second, WarnAt: 0.8})
	s.claim()
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{8 * time.Second, 0}, {time.Millisecond, 1}, {time.Second, 0}} {
		s.advance(c.at)
		if swept := s.sweep(); swept.Warned != c.want {
			t.Errorf("at %v %d warnings, want %d", s.now, swept.Warned, c.want)
		}
	}

	handlerIsWarned(t)

	live := running(t)
	started := make(chan struct{})
	_, stop := live.work(worker.Config{}, func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return nil // the handler has cleaned up
	})
	id := live.enqueue(queue.Task{Kind: "k", CancelGrace: time.Hour})
	<-started
	c, err := live.q.Cancel(t.Context(), id, "enough")
	if err != nil || c.GraceEnds.IsZero() {
		t.Errorf("Cancel = %+v, %v; want a grace", c, err)
	}
	if _, err := live.result(id); !errors.Is(err, refusal.ErrCancelled) {
		t.Errorf("its result is %v, want ErrCancelled", err)
	}
	stop()
}
