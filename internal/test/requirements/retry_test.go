package requirements

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// TestSeedS2 tests the document on retries and timeouts of a workflow engine.
func TestSeedS2(t *testing.T) {
	for _, claim := range []struct {
		name string
		test func(*testing.T)
	}{
		{"S2.4 a limit of 0 disables retries: 1 attempt", limitZero},
		{"S2.5 S2.7 without an expression errors are retried, declared failures are not, and timeouts if the task says so", retriedByDefault},
		{"S2.6 a handler cannot choose how its task ends, only how its attempt does", phaseIsTheServers},
		{"S2.8 S2.9 S2.30 a retried attempt is not an end: the next has the same input, and the end has one hook", retryInProgress},
		{"S2.10 S2.14 S2.15 a limit of 2 is attempts 1, 2 and 3, then Failed", limitTwo},
		{"S2.11 S2.15 an expression overrides the phase: phase != 'Succeeded' retries what is Failed, to attempt 3 of a limit of 2", expressionOverrides},
		{"S2.12 an expression reads phase, code, msg and outputs.parameters", expressionReads},
		{"S2.13 an expression that fails, or is not a boolean, retries nothing and is recorded", expressionFails},
		{"S2.17 the call's timeout takes precedence over the kind's", callBeforeKind},
		{"S2.22 S2.26 a task that has completed is never told to stop, and a sweep that meets it does nothing", completedIsNotStopped},
		{"S2.23 S2.24 an attempt that timed out has the phase Timeout, and is checked for a retry", timeoutIsChecked},
		{"S2.26 S2.27 S2.30 five reapers end a task once, and its hook runs once", hookRunsOnce},
		{"S2.32 a retry has the deadline of the first attempt", deadlineOfTheFirst},
		{"S2.33 timeout 10s, limit 3: an attempt that begins at 9.9s ends at 10s, and no other follows", boundedByTheDeadline},

		// Graphs.
		{"S2.3 a wait retries no task, even if its agent is retried", waitsRetryNothing},
		{"S2.16 a node without retries left fails the graph, unless the agent continues on that end", exhaustedFailsTheGraph},
		{"S2.19 a wait for a signal with a timeout of 1s times out", signalTimesOut},
		{"S2.20 S2.25 after a timeout that is allowed the next node runs; another timeout fails the graph", continuesOnTimeout},
		{"S2.28 S2.29 S2.30 a run past its 30m leaves no task alive, and its hook runs once", runOutOfTime},
		{"S2.31 a run of 10s and its nodes of 4s and 30s each end at their own limit, at 10s at the latest", bothTimeouts},
		{"S2.34 a part of a graph can be repeated if it is a task of its own", subTreeIsRetried},
		{"S2.35 suspending and resuming an agent emit events", suspensionIsTold},
	} {
		t.Run(claim.name, func(t *testing.T) {
			t.Parallel()
			claim.test(t)
		})
	}
}

// attempts runs a task to its end with a handler that calls fail. It returns the record and how
// often the handler ran.
func (s *stage) attempts(task queue.Task, fail func(ctx context.Context, attempt int) error) (*queue.Record, int) {
	s.Helper()
	var ran atomic.Int64
	_, stop := s.work(worker.Config{}, func(ctx context.Context) error { ran.Add(1); return fail(ctx, worker.Info(ctx).Attempt) })
	task.Kind = "k"
	id := s.enqueue(task)
	s.result(id)
	stop()
	return s.record(id), int(ran.Load())
}

func always(err error) func(context.Context, int) error {
	return func(context.Context, int) error { return err }
}

func limitZero(t *testing.T) {
	if r, n := running(t).attempts(queue.Task{}, always(errAlways)); n != 1 || r.Phase() != "Error" || r.Retries != 0 {
		t.Errorf("%d attempts, %s after %d retries; want 1, Error, 0", n, r.Phase(), r.Retries)
	}
}

func retriedByDefault(t *testing.T) {
	for _, c := range []struct {
		claim    string
		task     queue.Task
		fail     func(context.Context, int) error
		attempts int
		phase    string
	}{
		{"an error is retried", queue.Task{}, always(errAlways), 3, "Error"},
		{"an exit code is an error", queue.Task{}, always(worker.Fail(1, errAlways)), 3, "Error"},
		{"a declared failure is not", queue.Task{}, always(worker.Discard(errAlways)), 1, "Failed"},
		{"a timeout is not", queue.Task{AttemptTimeout: 30 * time.Millisecond}, untilTold, 1, "Timeout"},
		{"a timeout is, if the task says so", queue.Task{AttemptTimeout: 30 * time.Millisecond, OnTimeout: queue.OnTimeoutRetry}, untilTold, 3, "Timeout"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			c.task.MaxRetries = 2
			if r, n := running(t).attempts(c.task, c.fail); n != c.attempts || r.Phase() != c.phase {
				t.Errorf("%d attempts, then %s; want %d, then %s", n, r.Phase(), c.attempts, c.phase)
			}
		})
	}
}

func untilTold(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }

func phaseIsTheServers(t *testing.T) {
	s := frozen(t)
	s.enqueue(queue.Task{Kind: "k", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
	c := s.claim()
	before := s.dump()
	for _, o := range []queue.Outcome{{Verb: "timeout"}, {Verb: "FAILED"}, {Verb: queue.Fail, Class: "execution"}, {Verb: queue.Fail, Class: "Timeout"}} {
		o.ID, o.Epoch = c.ID, c.Epoch
		if _, err := claim.Of(s.q).Settle(t.Context(), 0, "w", queue.NewCall(), []queue.Outcome{o}, claim.Ask{}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%s %s: %v, want ErrInvalid", o.Verb, o.Class, err)
		}
	}
	if after := s.dump(); after != before {
		t.Errorf("a refused call changed something:\n%s", after)
	}
	// The worker's own time limit is a limit of the attempt, not the deadline of the task.
	s.settle(c, queue.Outcome{Verb: queue.Fail, Class: queue.ClassTimeout})
	if r := s.record(c.ID); r.TimeoutType != "attempt" {
		t.Errorf("the worker's own limit gives a timeout of the type %s", r.TimeoutType)
	}
}

func limitTwo(t *testing.T) {
	var attempts []int
	r, n := running(t).attempts(queue.Task{MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}}, func(_ context.Context, attempt int) error { attempts = append(attempts, attempt); return errAlways })
	if !slices.Equal(attempts, []int{1, 2, 3}) || n != 3 || r.Status != queue.Failed || r.Retries != 2 {
		t.Errorf("attempts %v, then %s with %d retries; want 1, 2, 3, then FAILED with 2", attempts, r.Status, r.Retries)
	}
}

func callBeforeKind(t *testing.T) {
	s := frozen(t)
	if err := s.q.DefineKind(t.Context(), "k", queue.Defaults{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for want, timeout := range map[time.Duration]time.Duration{time.Minute: 0, time.Second: time.Second, time.Hour: time.Hour} {
		if r := s.record(s.enqueue(queue.Task{Kind: "k", Timeout: timeout})); r.Deadline.Sub(r.CreatedAt) != want {
			t.Errorf("a call with the timeout %v, of a kind with 1m, gets %v, want %v", timeout, r.Deadline.Sub(r.CreatedAt), want)
		}
	}
}

func timeoutIsChecked(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry})
	for retries := range 2 {
		if c := s.claim(); c.ID != id || c.Retries != retries {
			t.Fatalf("claim %+v, want %s with %d retries", c, id, retries)
		}
		s.advance(time.Second + time.Millisecond)
		s.sweep()
	}
	if r := s.record(id); r.Phase() != "Timeout" || r.Reason != "timeout" || r.TimeoutType != "attempt" || r.Retries != 1 {
		t.Errorf("it is %s (%s, %s) after %d retries", r.Phase(), r.Reason, r.TimeoutType, r.Retries)
	}
}

func deadlineOfTheFirst(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", Timeout: time.Minute, MaxRetries: 3, Backoff: queue.Backoff{Delay: time.Second, Exponential: true}})
	first := s.record(id).Deadline
	for _, wait := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
		s.advance(wait)
		s.sweep()
		c := s.claim()
		if r := s.record(id); !r.Deadline.Equal(first) || !c.Deadline.Equal(first) {
			t.Errorf("attempt %d has the deadline %v, want %v", c.Attempt(), c.Deadline, first)
		}
		s.settle(c, queue.Outcome{Verb: queue.Fail, Error: "no"})
	}
}

func boundedByTheDeadline(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 10 * time.Second, MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}})
	s.settle(s.claim(), queue.Outcome{Verb: queue.Fail, Error: "no", Delay: 9900 * time.Millisecond})
	s.advance(9900 * time.Millisecond)
	s.sweep()
	if c := s.claim(); c.Attempt() != 2 || c.Deadline.Sub(c.Now) != 100*time.Millisecond {
		t.Errorf("attempt %d has %v, want 100ms", c.Attempt(), c.Deadline.Sub(c.Now))
	}
	s.advance(100 * time.Millisecond)
	if s.sweep(); s.record(id).Status != queue.Running {
		t.Errorf("at its deadline it is %s", s.record(id).Status)
	}
	s.advance(time.Millisecond)
	s.sweep()
	s.timedOut(id)
	if claims := s.fetch(1); len(claims) != 0 {
		t.Errorf("another attempt follows: %+v", claims)
	}
}
