package requirements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The requirements on agents in the document on durable timeouts.

func timed(a *agentwait.Agent, ms int, timeout time.Duration) *agentwait.Future[operated] {
	return agentwait.Schedule[operated](a, operation{DelayMS: ms}, queue.Task{Kind: "slow-operation", Timeout: timeout})
}

func partialResults(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		s, err := agentwait.JoinAllSettled(a, timed(a, 100, 0), timed(a, 60_000, 30*time.Second), timed(a, 200, 0))
		if err != nil {
			return "", err
		}
		late := s.Failed[0]
		return fmt.Sprintf("%s: %v %s %d", summary(s), late.TimedOut, late.Err, len(s.FailedOrCancelled())), nil
	})
	p.gives(r, "completed [0 2] failed [1] cancelled [] pending []: true Task timed out: "+r.ID+".2: Task exceeded deadline 1")
}

func settledByPosition(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		gone := agentwait.Schedule[processed](a, nil, queue.Task{Kind: "nobody", Queue: "nowhere"})
		all := []*agentwait.Future[processed]{conditional(a, "a", true), gone, conditional(a, "c", false), conditional(a, "d", true)}
		if _, err := agentwait.Cancel(a, "not wanted", gone); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, all...)
		if err != nil {
			return "", err
		}
		var without []string // outcomes without a result, which include CANCELLED
		for _, o := range s.FailedOrCancelled() {
			without = append(without, fmt.Sprintf("%d:%s: %s", o.Index, o.Status, strings.ReplaceAll(o.Err.Error(), a.ID(), "A")))
		}
		want := []string{"0:FAILED: Task 'conditional-fail-task' (id=A.2) failed: told to fail: a",
			"1:CANCELLED: result A.1: task cancelled: not wanted", "3:FAILED: Task 'conditional-fail-task' (id=A.4) failed: told to fail: d"}
		if !slices.Equal(without, want) {
			t.Errorf("FailedOrCancelled =\n%q, want\n%q", without, want)
		}
		return summary(s) + ": " + s.Failed[1].Err.Error(), nil
	})
	p.gives(r, "completed [2] failed [0 3] cancelled [1] pending []: Task 'conditional-fail-task' (id="+r.ID+".4) failed: told to fail: d")
}

// A timeout of its task wakes an agent as a completion does: at once, and once. The agent gets
// the timeout as an error.
func wokenByATimeout(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		_, err := agentwait.Await(a, timed(a, 60_000, 30*time.Second))
		var late *queue.TaskTimedOutError
		if !errors.As(err, &late) || late.TaskID != a.ID()+".1" || late.StartedAt.IsZero() || late.Deadline.IsZero() || !exceeded(err) {
			return "", err
		}
		_, err = agentwait.Await(a, timed(a, 100, 30*time.Second))
		return "got the timeout", err
	})
	p.gives(r, "got the timeout")
	if took := at(r.CreatedAt, r.CompletedAt); took != "30.101s" || r.Epoch != 3 {
		t.Errorf("the agent took %s in %d runs, want 30.101s in 3", took, r.Epoch)
	}
	var reasons []string
	for _, e := range p.emitted("task_resumed") {
		reasons = append(reasons, fmt.Sprint(e["reason"]))
	}
	if got := strings.Join(reasons, " "); got != "satisfied satisfied" {
		t.Errorf("the agent was resumed for %q", got)
	}
}

func nonMembersWakeNobody(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		other, waited := slow(a, "other", 100), slow(a, "waited for", 5000)
		v, err := agentwait.Await(a, waited)
		if err != nil {
			return "", err
		}
		w, err := agentwait.Value(a, other)
		if !errors.Is(err, agentwait.ErrTaskStillRunning) { // its result was never read
			t.Errorf("the other: %v, %v", w, err)
		}
		return v.Op, nil
	})
	p.start()
	id := p.agent("agent", nil)
	p.pass(time.Second)
	if r, other := p.record(id), p.children(id)[0]; r.Status != queue.Waiting || r.Epoch != 1 || other.Status != queue.Completed {
		t.Errorf("after the end of a task that it does not wait for (%s) the agent is %s in run %d", other.Status, r.Status, r.Epoch)
	}
	p.gives(p.end(id), "waited for")
}

// The recipe of the document: after a timeout schedule the same task again, with 60s.
func retryRecipeOfAnAgent(t *testing.T) {
	p := newPlay(t)
	worker.Handle(p.w, "slow-task", func(ctx context.Context, in string) (string, error) { return in, p.sleep(ctx, 45*time.Second) })
	r := p.act(func(a *agentwait.Agent) (string, error) {
		v, err := agentwait.Await(a, agentwait.Schedule[string](a, "input", queue.Task{Kind: "slow-task", Timeout: 30 * time.Second}))
		if err != nil && exceeded(err) {
			v, err = agentwait.Await(a, agentwait.Schedule[string](a, "input", queue.Task{Kind: "slow-task", Timeout: 60 * time.Second}))
		}
		return v, err
	})
	p.gives(r, "input")
	if got := p.statuses(r.ID); got != "FAILED COMPLETED" || at(r.CreatedAt, r.CompletedAt) != "1m15.001s" {
		t.Errorf("the tasks are %s after %s", got, at(r.CreatedAt, r.CompletedAt))
	}
}

func doneBeforeTheWait(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[operated]{slow(a, "a", 5000), slow(a, "b", 100), slow(a, "c", 3000)}
		if err := agentwait.Sleep(a, time.Second); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, all...)
		return summary(s), err
	})
	p.gives(r, "completed [0 1 2] failed [] cancelled [] pending []")
	if took := at(r.CreatedAt, r.CompletedAt); took != "5s" {
		t.Errorf("it took %s, want 5s", took)
	}
	waits := p.emitted("task_suspended") // the sleep and the wait, which names all its members
	if len(waits) != 2 || fmt.Sprint(waits[1]["members"]) != "3" || waits[1]["wait_mode"] != string(queue.WaitSettled) {
		t.Errorf("the agent was suspended by %v, want last for 3 members", waits)
	}
}

func saysWhyItWaits(t *testing.T) {
	for _, c := range []struct {
		claim string
		wait  func(a *agentwait.Agent, all ...*agentwait.Future[operated]) error
		says  string
		mode  queue.Mode
	}{
		{"settled", func(a *agentwait.Agent, all ...*agentwait.Future[operated]) error {
			_, err := agentwait.JoinAllSettled(a, all...)
			return err
		}, "Waiting for all tasks to settle", queue.WaitSettled},
		{"first success", func(a *agentwait.Agent, all ...*agentwait.Future[operated]) error {
			_, err := agentwait.SelectOK(a, all...)
			return err
		}, "Waiting for successful task", queue.WaitAnyOK},
		{"a reason of its own", func(a *agentwait.Agent, all ...*agentwait.Future[operated]) error {
			_, err := agentwait.JoinAll(a.With(agentwait.Wait{Reason: "Waiting for two \"operations\""}), all...)
			return err
		}, "Waiting for two \"operations\"", queue.WaitAll},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := newPlay(t)
			agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
				return "", c.wait(a, slow(a, "a", 0), slow(a, "b", 0))
			})
			p.start()
			id := p.agent("agent", nil)
			p.rest()
			e, err := inspect.Explain(t.Context(), p.q, id)
			if err != nil || e.Why != inspect.WhyWaiting || e.Wait == nil || !strings.Contains(e.String(), fmt.Sprintf("%q", c.says)) {
				t.Fatalf("the agent is explained as %+v, %v; want a wait with the reason %s", e, err, c.says)
			}
			text, err := json.Marshal(e)
			var shown struct {
				Wait struct {
					Tasks  []string   `json:"wait_for_tasks"`
					Mode   queue.Mode `json:"wait_mode"`
					Reason string     `json:"wait_reason"`
				} `json:"wait"`
			}
			if err := errors.Join(err, json.Unmarshal(text, &shown)); err != nil {
				t.Fatal(err)
			}
			if w := shown.Wait; !slices.Equal(w.Tasks, []string{id + ".1", id + ".2"}) || w.Mode != c.mode || w.Reason != c.says {
				t.Errorf("explain --json shows %+v of %s", w, text)
			}
			p.end(id)
		})
	}
}

func firstSuccess(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		first, err := agentwait.SelectOK(a, conditional(a, "a", true), conditional(a, "b", true), conditional(a, "c", false))
		if err != nil {
			return "", err
		}
		// If no task succeeds, the error is that of the first to fail.
		_, err = agentwait.SelectOK(a, conditional(a, "d", true), conditional(a, "e", true))
		var none *agentwait.AllTasksFailedError
		if !errors.As(err, &none) || len(none.All) != 2 || !errors.Is(none.All[0], none.First) {
			return "", fmt.Errorf("all failed: %w", err)
		}
		var failed *queue.TaskFailedError
		if !errors.As(none.First, &failed) {
			return "", fmt.Errorf("the first error is %#v, want a TaskFailedError", none.First)
		}
		item := map[string]string{a.ID() + ".4": "d", a.ID() + ".5": "e"}[failed.TaskID]
		if failed.Kind != "conditional-fail-task" || failed.Err.Error() != "told to fail: "+item {
			t.Errorf("the first error is of task %s, %s: %v", failed.TaskID, failed.Kind, failed.Err)
		}
		if want := "All tasks failed: Task 'conditional-fail-task' (id=" + failed.TaskID + ") failed: told to fail: " + item; err.Error() != want {
			t.Errorf("the error reads %q, want %q", err, want)
		}
		return fmt.Sprintf("%d %s", first.Index, first.Value.Processed), nil
	})
	p.gives(r, "2 processed:c")
}

// The last test of the document: a timeout of 5 s, a worker that sleeps 10 s, and a waiting agent
// that gets the timeout and continues.
func endToEndAgent(t *testing.T) {
	p := newPlay(t)
	worker.Handle(p.w, "deaf", func(ctx context.Context, _ any) (string, error) {
		err := p.sleep(context.WithoutCancel(ctx), 10*time.Second)
		return "too late", err
	})
	r := p.act(func(a *agentwait.Agent) (string, error) {
		_, err := agentwait.Await(a, agentwait.Schedule[string](a, nil, queue.Task{Kind: "deaf", Timeout: 5 * time.Second, MaxRetries: 3}))
		if !exceeded(err) || !errors.Is(err, context.DeadlineExceeded) {
			return "", err
		}
		return "handled: " + err.Error(), nil
	})
	p.gives(r, "handled: Task timed out: "+r.ID+".1: Task exceeded deadline")
	if took := at(r.CreatedAt, r.CompletedAt); took != "5.001s" {
		t.Errorf("the agent was done after %s, want 5.001s", took)
	}
	p.pass(time.Minute)
	if c := p.timedOut(r.ID + ".1"); c.Epoch != 1 || len(p.timeouts()) != 1 {
		t.Errorf("the task ran %d times, and there are %d events", c.Epoch, len(p.timeouts()))
	}
}

// A timeout error has the instant that passed, for each limit of a task.
func timeoutsOfEachType(t *testing.T) {
	s := frozen(t)
	s.enqueue(queue.Task{Kind: "owner", Timeout: 20 * time.Second})
	owner := s.claim().ID
	type limited struct {
		task   queue.Task
		taken  bool
		passes time.Duration
	}
	ids := map[queue.TimeoutType]string{}
	cases := map[queue.TimeoutType]limited{
		"execution": {queue.Task{Kind: "k", Timeout: 30 * time.Second}, true, 30 * time.Second},
		"attempt":   {queue.Task{Kind: "k", AttemptTimeout: 10 * time.Second, Timeout: time.Hour}, true, 10 * time.Second},
		"queue":     {queue.Task{Kind: "k", Queue: "nowhere", QueueTimeout: 15 * time.Second}, false, 15 * time.Second},
		"workflow":  {queue.Task{Kind: "k", ID: owner + ".1"}, true, 20 * time.Second},
	}
	begun := s.now
	for kind, c := range cases {
		ids[kind] = s.enqueue(c.task)
		if c.taken {
			s.claim()
		}
	}
	s.advance(time.Minute)
	for kind, c := range cases {
		_, err := s.result(ids[kind])
		var late *queue.TaskTimedOutError
		if !errors.As(err, &late) || late.TaskID != ids[kind] || late.Type != kind || !late.Deadline.Equal(begun.Add(c.passes)) {
			t.Errorf("%s: %#v, want an instant %v after the start", kind, err, c.passes)
		}
	}
}
