package requirements

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The first of the three layers: the deadline of a run. A run is a task with children.

func run(a *agentwait.Agent, kind string, task queue.Task) *agentwait.Future[string] {
	task.Kind = kind
	return agentwait.Schedule[string](a, nil, task)
}

func deadlineOfARun(t *testing.T) {
	s := frozen(t)
	if err := s.q.DefineKind(t.Context(), "workflow", queue.Defaults{Timeout: 10 * time.Minute, OnDeadline: queue.DeadlineFail}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim string
		task  queue.Task
		has   time.Duration // 0: no deadline
		on    string
	}{
		{"the definition's", queue.Task{Kind: "workflow"}, 10 * time.Minute, "fail"},
		{"none", queue.Task{Kind: "workflow", Timeout: queue.None}, 0, "fail"},
		{"the policy of the call", queue.Task{Kind: "workflow", OnDeadline: queue.DeadlineCancelAll}, 10 * time.Minute, "cancel_all"},
		{"no definition", queue.Task{Kind: "k"}, 0, ""},
	} {
		r := s.record(s.enqueue(c.task))
		has := time.Duration(0)
		if !r.Deadline.IsZero() {
			has = r.Deadline.Sub(r.CreatedAt)
		}
		if has != c.has || r.Fields["on_deadline"] != c.on {
			t.Errorf("%s: the run has %v and on_deadline=%s, want %v and %s", c.claim, has, r.Fields["on_deadline"], c.has, c.on)
		}
	}
}

func runIsStrict(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		return "", agentwait.Sleep(a, 24*time.Hour)
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: time.Hour}, nil)
	p.pass(time.Hour)
	if r := p.record(id); r.Status != queue.Waiting || r.Overdue {
		t.Errorf("at its instant the run is %s, overdue %v", r.Status, r.Overdue)
	}
	p.pass(time.Millisecond)
	p.timedOut(id)
}

// The two policies differ in the error of the run, and in what its owner sees. With both, the
// tasks of the run time out with it.
func policiesOfARun(t *testing.T) {
	for _, c := range []struct {
		policy        queue.OnDeadline
		error         string
		sees          string
		excuse        agentwait.Ending
		policyApplied string
	}{
		{"", "Task exceeded deadline", "Task timed out: %s: Task exceeded deadline", agentwait.OnTimeout, "cancel_all"},
		{queue.DeadlineCancelAll, "Task exceeded deadline", "Task timed out: %s: Task exceeded deadline", agentwait.OnTimeout, "cancel_all"},
		{queue.DeadlineFail, "Workflow exceeded timeout", "Task 'child-run' (id=%s) failed: Workflow exceeded timeout", agentwait.OnFailed, "fail"},
	} {
		t.Run("on_deadline "+string(c.policy), func(t *testing.T) {
			p := newPlay(t)
			agentwait.Handle(p.w, "child-run", func(a *agentwait.Agent, _ any) (string, error) {
				done := process(a, "done")[0]
				err := agentwait.AwaitAll(a, done, slow(a, "runs", 60*60_000), agentwait.Schedule[operated](a, nil, queue.Task{Kind: "nobody", Queue: "nowhere"}))
				return "", err
			})
			r := p.act(func(a *agentwait.Agent) (string, error) {
				child := run(a, "child-run", queue.Task{Timeout: 10 * time.Minute, OnDeadline: c.policy})
				_, seen := agentwait.Await(a, child)
				if errors.Is(seen, agentwait.ErrSuspended) {
					return "", seen
				}
				for _, other := range []agentwait.Ending{agentwait.OnTimeout, agentwait.OnFailed} {
					if _, err := agentwait.Await(a, child.ContinueOn(other)); (err == nil) != (other == c.excuse) {
						t.Errorf("ContinueOn(%v): %v", other, err)
					}
				}
				return seen.Error(), nil
			})
			child := p.record(r.ID + ".1")
			p.gives(r, fmt.Sprintf(c.sees, child.ID))
			if child.Status != queue.Failed || child.Error != c.error || child.Phase() != "Timeout" || at(r.CreatedAt, child.CompletedAt) != "10m0s" {
				t.Errorf("the run is %s (%s): %q at %s", child.Status, child.Phase(), child.Error, at(r.CreatedAt, child.CompletedAt))
			}
			if got := p.statuses(child.ID); got != "COMPLETED FAILED FAILED" {
				t.Errorf("its tasks are %s", got)
			}
			for _, task := range p.children(child.ID)[1:] {
				if task.TimeoutType != "workflow" || !task.TimedOut || !task.CompletedAt.Equal(child.CompletedAt) {
					t.Errorf("task %s ended with %s at %v", task.ID, task.TimeoutType, task.CompletedAt)
				}
			}
			e := p.timeouts()[child.ID]
			if e["policy_applied"] != c.policyApplied || e["timeout_duration_ms"] != "600000" || e["timeout_type"] != "execution" {
				t.Errorf("the event says %v", e)
			}
		})
	}
}

// A run in a loop, and a run whose tasks multiply, end at their deadline of an hour.
func runawaysAreStopped(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "circle", func(a *agentwait.Agent, _ any) (string, error) {
		for {
			for _, node := range []string{"A", "B", "C"} {
				if _, err := agentwait.Await(a, slow(a, node, 7*60_000)); err != nil {
					return "", err
				}
			}
		}
	})
	agentwait.Handle(p.w, "bomb", func(a *agentwait.Agent, _ any) (string, error) {
		if err := agentwait.Sleep(a, 10*time.Minute); err != nil {
			return "", err
		}
		two := []*agentwait.Future[string]{run(a, "bomb", queue.Task{}), run(a, "bomb", queue.Task{})}
		_, err := agentwait.JoinAll(a, two...)
		return "", err
	})
	p.start()
	circle := p.task(queue.Task{Kind: "circle", Timeout: time.Hour}, nil)
	bomb := p.task(queue.Task{Kind: "bomb", Timeout: time.Hour}, nil)
	p.end(circle)
	p.end(bomb)
	p.pass(24 * time.Hour)
	for _, id := range []string{circle, bomb} {
		if r := p.record(id); at(r.CreatedAt, r.CompletedAt) != "1h0m0s" || !r.TimedOut {
			t.Errorf("the %s ended at %s: %s", r.Kind, at(r.CreatedAt, r.CompletedAt), r.Error)
		}
	}
	if n := p.record(circle).Fields["children"]; n != "9" {
		t.Errorf("the loop had %s tasks, want 9: one every 7 minutes", n)
	}
	stats, err := p.q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range stats.Queues {
		if line.Ready+line.Running+line.Waiting != 0 {
			t.Errorf("queue %s still has %+v", line.Queue, line)
		}
	}
}

// A kind may have an hour as its default. Other kinds do not have it.
func hourIsASetting(t *testing.T) {
	p := newPlay(t)
	code := func(a *agentwait.Agent, _ any) (string, error) {
		open := agentwait.Promise[string](a, "", 0)
		return agentwait.Await(a, open)
	}
	agentwait.Handle(p.w, "workflow", code)
	agentwait.Handle(p.w, "agent", code)
	p.w.Defaults("workflow", queue.Defaults{Timeout: time.Hour})
	if err := p.w.DefineKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.start()
	workflow, agent := p.agent("workflow", nil), p.agent("agent", nil)
	p.pass(2 * time.Hour)
	p.timedOut(workflow)
	if r := p.record(agent); r.Status != queue.Waiting || !r.Deadline.IsZero() {
		t.Errorf("an agent of another kind is %s with the deadline %v", r.Status, r.Deadline)
	}
}

// The timeout of the call takes precedence over that of the kind, and that of the kind over the
// child's own. Each of the three may be missing.
func precedenceOfTimeouts(t *testing.T) {
	const node, action, child = 30 * time.Minute, 20 * time.Minute, 10 * time.Minute
	for bits := range 8 {
		var task queue.Task
		var defaults queue.Defaults
		want := time.Duration(0)
		if bits&1 != 0 {
			task.DefaultTimeout, want = child, child
		}
		if bits&2 != 0 {
			defaults.Timeout, want = action, action
		}
		if bits&4 != 0 {
			task.Timeout, want = node, node
		}
		t.Run(fmt.Sprintf("call %v, kind %v, child %v", task.Timeout, defaults.Timeout, task.DefaultTimeout), func(t *testing.T) {
			p := newPlay(t)
			worker.Handle(p.w, "research-workflow", func(ctx context.Context, _ any) (string, error) { return "", p.sleep(ctx, 24*time.Hour) })
			if err := p.q.DefineKind(t.Context(), "research-workflow", defaults); err != nil {
				t.Fatal(err)
			}
			agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
				_, err := agentwait.Await(a, run(a, "research-workflow", task))
				return "", err
			})
			p.start()
			id := p.agent("agent", nil)
			p.rest()
			has, r := time.Duration(0), p.record(id+".1")
			if !r.Deadline.IsZero() {
				has = r.Deadline.Sub(r.CreatedAt)
			}
			if has != want {
				t.Errorf("the child has %v, want %v", has, want)
			}
			if p.end(id); want != 0 && at(r.CreatedAt, p.record(id+".1").CompletedAt) != want.String() {
				t.Errorf("it ended at %s", at(r.CreatedAt, p.record(id+".1").CompletedAt))
			}
		})
	}
}

// A child with 600,000 ms in its own definition gets the 1,800,000 ms of its caller.
func callersTimeoutWins(t *testing.T) {
	p := newPlay(t)
	p.w.Defaults("research-workflow", queue.Defaults{Timeout: 600_000 * time.Millisecond})
	agentwait.Handle(p.w, "research-workflow", func(a *agentwait.Agent, _ any) (string, error) {
		return "researched", agentwait.Sleep(a, 20*time.Minute)
	})
	r := p.act(func(a *agentwait.Agent) (string, error) {
		longer := run(a, "research-workflow", queue.Task{Timeout: 1_800_000 * time.Millisecond})
		s, err := agentwait.JoinAllSettled(a, run(a, "research-workflow", queue.Task{}), longer)
		return summary(s), err
	})
	p.gives(r, "completed [1] failed [0] cancelled [] pending []")
}

// A run of an hour with nodes of 5 and 10 minutes, and a node with the timeout of its kind.
func exampleOfAHierarchy(t *testing.T) {
	p := newPlay(t)
	for kind, defaults := range map[string]queue.Defaults{"act1": {}, "act2": {Timeout: time.Minute}, "act3": {Timeout: 15 * time.Minute}} {
		worker.Handle(p.w, kind, func(ctx context.Context, _ any) (string, error) { return "", p.sleep(ctx, 24*time.Hour) })
		p.w.Defaults(kind, defaults)
	}
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		for { // a faulty graph, which begins again without limit
			for _, node := range []*agentwait.Future[string]{
				run(a, "act1", queue.Task{Timeout: 300_000 * time.Millisecond}), run(a, "act2", queue.Task{Timeout: 600_000 * time.Millisecond}), run(a, "act3", queue.Task{}),
			} {
				if _, err := agentwait.Await(a, node.ContinueOn(agentwait.OnTimeout)); err != nil {
					return "", err
				}
			}
		}
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: 3_600_000 * time.Millisecond}, nil)
	// The children of a round are created together, so their times begin together.
	r := p.end(id)
	var seen []string
	for _, c := range p.children(id) {
		seen = append(seen, fmt.Sprintf("%s %s", strings.TrimPrefix(c.Kind, "act"), at(r.CreatedAt, c.CompletedAt)))
	}
	want := []string{"1 5m0s", "2 10m0s", "3 15m0s", "1 20m0.001s", "2 25m0.001s", "3 30m0.001s", "1 35m0.002s", "2 40m0.002s", "3 45m0.002s", "1 50m0.003s", "2 55m0.003s", "3 1h0m0s"}
	if fmt.Sprint(seen) != fmt.Sprint(want) || r.Phase() != "Timeout" || at(r.CreatedAt, r.CompletedAt) != "1h0m0s" {
		t.Errorf("the run is %s at %s, its nodes\n%q, want\n%q", r.Phase(), at(r.CreatedAt, r.CompletedAt), seen, want)
	}
}

// The run, the deadline of a node, the attempt limit of another node that would be retried, and
// the wait all time out at one instant. The end of the run counts, and the others emit no event.
func runGoesFirst(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		s, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: time.Minute, Proceed: true}),
			timed(a, 60*60_000, time.Minute),
			agentwait.Schedule[operated](a, operation{DelayMS: 60 * 60_000}, queue.Task{Kind: "slow-operation", AttemptTimeout: time.Minute, MaxRetries: 3, OnTimeout: queue.OnTimeoutRetry}))
		return summary(s), err
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: time.Minute}, nil)
	p.end(id)
	p.pass(time.Hour)
	p.timedOut(id)
	for _, c := range p.children(id) {
		if c.TimeoutType != "workflow" || c.Retries != 0 || at(p.record(id).CreatedAt, c.CompletedAt) != "1m0s" {
			t.Errorf("node %s ended with %s after %d retries at %v", c.ID, c.TimeoutType, c.Retries, c.CompletedAt)
		}
	}
	for _, kind := range []string{"wait_timed_out", "attempt_timed_out", "task_resumed", "task_retried"} {
		if events := p.emitted(kind); len(events) != 0 {
			t.Errorf("%s was emitted: %v", kind, events)
		}
	}
	if r := p.record(id); r.Epoch != 1 {
		t.Errorf("the agent ran %d times", r.Epoch)
	}
}

// A child's timeout is its own, however little time its owner has left, and the end of the owner
// ends it earlier. A budget gives the child a share of the remaining time.
func childHasItsOwnTime(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		if err := agentwait.Sleep(a, 5*time.Minute); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, timed(a, 60*60_000, time.Hour),
			agentwait.Schedule[operated](a, operation{DelayMS: 60 * 60_000}, queue.Task{Kind: "slow-operation", Budget: 0.5}))
		return summary(s), err
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: 10 * time.Minute}, nil)
	p.pass(6 * time.Minute)
	own, share := p.record(id+".2"), p.record(id+".3") // the sleep is child 1
	if own.Deadline.Sub(own.CreatedAt) != time.Hour || share.Deadline.Sub(share.CreatedAt) != 150*time.Second {
		t.Errorf("the children have %v and %v, want 1h and half of 5m", own.Deadline.Sub(own.CreatedAt), share.Deadline.Sub(share.CreatedAt))
	}
	r := p.end(id)
	own, share = p.record(id+".2"), p.record(id+".3")
	if own.TimeoutType != "workflow" || at(r.CreatedAt, own.CompletedAt) != "10m0s" || share.TimeoutType != "execution" || at(r.CreatedAt, share.CompletedAt) != "7m30s" {
		t.Errorf("the children ended with %s at %s and %s at %s", own.TimeoutType, at(r.CreatedAt, own.CompletedAt), share.TimeoutType, at(r.CreatedAt, share.CompletedAt))
	}
}
