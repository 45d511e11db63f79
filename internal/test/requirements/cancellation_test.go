package requirements

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// The tests of cancellation that the document on parallel tasks of agents names.

func TestAgentCancelTask(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		runs := slow(a, "runs", 10_000)
		if err := agentwait.Sleep(a, time.Second); err != nil {
			return "", err
		}
		c, err := agentwait.Cancel(a, "took too long", runs)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", c[0]), nil
	})
	p.gives(r, fmt.Sprintf("%+v", agentwait.CancelResult[operated]{Cancelled: true}))
	c := p.children(r.ID)[0]
	if c.Status != queue.Cancelled || c.Error != "took too long" || at(r.CreatedAt, c.CompletedAt) != "1s" {
		t.Errorf("the task is %s (%s) at %s", c.Status, c.Error, at(r.CreatedAt, c.CompletedAt))
	}
	p.stop() // this would wait for a handler that was not stopped
	if n := p.w.Stats().Running; n != 0 {
		t.Errorf("%d handlers still run", n)
	}
}

func TestAgentSelectCancelsRemaining(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		first, err := agentwait.Select(a, slow(a, "fast", 500), slow(a, "slow", 5000))
		return fmt.Sprintf("%d %s", first.Index, first.Value.Op), err
	})
	p.gives(r, "0 fast")
	if got := p.statuses(r.ID); got != "COMPLETED CANCELLED:not_needed" || at(r.CreatedAt, r.CompletedAt) != "500ms" {
		t.Errorf("the tasks are %s after %s, want COMPLETED CANCELLED after 500ms", got, at(r.CreatedAt, r.CompletedAt))
	}
}

// Three tasks of ten seconds and a limit of two seconds: all three are cancelled, and the agent
// continues.
func TestAgentTimeoutCancelsAll(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		_, err := agentwait.JoinAll(a.With(agentwait.Wait{Limit: 2 * time.Second}), slow(a, "a", 10_000), slow(a, "b", 10_000), slow(a, "c", 10_000))
		return limited(err)
	})
	p.gives(r, "completed [] pending [0 1 2]")
	if got := p.statuses(r.ID); got != "CANCELLED:wait_timeout CANCELLED:wait_timeout CANCELLED:wait_timeout" || at(r.CreatedAt, r.CompletedAt) != "2.001s" {
		t.Errorf("the tasks are %s after %s, want all CANCELLED 1ms past the 2s", got, at(r.CreatedAt, r.CompletedAt))
	}
}

// limited formats a WaitTimeoutError, and returns any other error.
func limited(err error) (string, error) {
	var late *agentwait.WaitTimeoutError
	if !errors.As(err, &late) {
		return "", err
	}
	return fmt.Sprintf("completed %v pending %v", late.Completed, late.Pending), nil
}

func TestAgentTimeoutPartialCompletion(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[operated]{slow(a, "a", 10_000), slow(a, "b", 100), slow(a, "c", 10_000)}
		_, err := agentwait.JoinAll(a.With(agentwait.Wait{Limit: 2 * time.Second}), all...)
		text, err := limited(err)
		if err != nil {
			return "", err
		}
		done, err := agentwait.Value(a, all[1])
		return text + ": " + done.Op, err
	})
	p.gives(r, "completed [1] pending [0 2]: b")
	if got, want := p.statuses(r.ID), "CANCELLED:wait_timeout COMPLETED CANCELLED:wait_timeout"; got != want {
		t.Errorf("the tasks are %s, want %s", got, want)
	}
}

func TestAgentCancelCompletedTask(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		f := process(a, "a")[0]
		if _, err := agentwait.Await(a, f); err != nil {
			return "", err
		}
		c, err := agentwait.Cancel(a, "late", f)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", c[0]), nil
	})
	p.gives(r, fmt.Sprintf("%+v", agentwait.CancelResult[processed]{AlreadyCompleted: true, Value: processed{"processed:a"}}))
	if got := p.statuses(r.ID); got != "COMPLETED" {
		t.Errorf("the task is %s", got)
	}
}

// An agent may neither cancel a task of another agent nor wait for it.
func TestAgentCancelUnauthorized(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	agentwait.Handle(p.w, "thief", func(a *agentwait.Agent, victim string) (string, error) {
		mine := slow(a, "mine", 0)
		theirs := agentwait.Of[operated](a, victim)
		if _, err := agentwait.Cancel(a, "", mine, theirs); !errors.Is(err, agentwait.ErrNotOwner) {
			t.Errorf("Cancel of a stranger's task: %v", err)
		}
		if _, err := agentwait.JoinAll(a, mine, theirs); !errors.Is(err, agentwait.ErrNotOwner) {
			t.Errorf("a wait for a stranger's task: %v", err)
		}
		v, err := agentwait.Await(a, mine)
		return v.Op, err
	})
	agentwait.Handle(p.w, "victim", func(a *agentwait.Agent, _ any) (string, error) {
		v, err := agentwait.Await(a, slow(a, "theirs", 10_000))
		return v.Op, err
	})
	p.start()
	victim := p.agent("victim", nil)
	p.rest()
	p.gives(p.end(p.agent("thief", victim+".1")), "mine")
	p.gives(p.end(victim), "theirs")
}

// The server refuses it too, whatever the client sends: it refuses the whole call, and stores
// nothing.
func TestAgentCancelTaskWrongAgent(t *testing.T) {
	t.Parallel()
	s := frozen(t)
	victim := s.enqueue(queue.Task{Kind: "agent"})
	s.claim()
	theirs := s.enqueue(queue.Task{ID: victim + ".1", Kind: "k", Queue: "other"})
	thief := s.enqueue(queue.Task{Kind: "agent"})
	c := s.claim()
	mine := s.enqueue(queue.Task{ID: thief + ".1", Kind: "k", Queue: "other"})
	before := s.dump()
	if _, err := s.q.CancelAs(t.Context(), "call", thief, []string{mine, theirs}, ""); !errors.Is(err, refusal.ErrNotOwner) {
		t.Errorf("CancelAs: %v, want %q", err, "Task not owned by agent")
	}
	// The client has seen that itself; the script sees it, too.
	reply, err := s.q.Engine().Call(t.Context(), 0, "cancel", "call", "", thief, mine, theirs)
	if want := fmt.Sprintf("[[FOREIGN %s] [FOREIGN %s]]", theirs, theirs); err != nil || fmt.Sprint(reply) != want {
		t.Errorf("the script answers %v, %v, want %s", reply, err, want)
	}
	_, err = claim.Of(s.q).Suspend(t.Context(), claim.Suspension{Agent: thief, Epoch: c.Epoch, Worker: "w",
		Wait: claim.Wait{Entry: 1, Mode: queue.WaitAny, Digest: "d", CancelLosers: true, Limit: time.Second,
			Members: []claim.Member{{ID: mine}, {ID: theirs}}},
		Note:     claim.Note{Entries: []claim.Entry{{Number: 2, Text: []byte("noted")}}},
		Children: []queue.Task{{ID: thief + ".2", Kind: "k", Queue: "other"}}})
	if !errors.Is(err, refusal.ErrNotOwner) || !errors.Is(err, agentwait.ErrNotOwner) {
		t.Errorf("Suspend: %v, want %q", err, "Task not owned by agent")
	}
	if after := s.dump(); after != before {
		t.Errorf("a refused call changed something:\n--- before\n%s--- after\n%s", before, after)
	}
}

// Results reads an agent's own tasks in one call. If one id is not its own, the call is refused.
func TestAgentTaskResultsAreOwned(t *testing.T) {
	t.Parallel()
	s := frozen(t)
	victim := s.enqueue(queue.Task{Kind: "agent"})
	theirs := s.enqueue(queue.Task{ID: victim + ".1", Kind: "k", Queue: "other"})
	agent := s.enqueue(queue.Task{Kind: "agent"})
	mine := []string{s.enqueue(queue.Task{ID: agent + ".1", Kind: "k"}), s.enqueue(queue.Task{ID: agent + ".two", Kind: "k", Promise: true})}
	if _, err := s.q.Resolve(t.Context(), mine[1], []byte("42")); err != nil {
		t.Fatal(err)
	}
	read := func(ids ...string) (records []*queue.Record, calls int, err error) {
		calls = s.scripts("", func() { records, err = claim.Of(s.q).Results(t.Context(), agent, ids) })
		return records, calls, err
	}
	records, calls, err := read(mine[1], mine[0], mine[1])
	if err != nil || calls != 1 || len(records) != 3 {
		t.Fatalf("its own: %d records, %v, in %d calls: want 3 in 1", len(records), err, calls)
	}
	for i, want := range []string{"COMPLETED 42", "PENDING ", "COMPLETED 42"} {
		if got := string(records[i].Status) + " " + string(records[i].Result); got != want {
			t.Errorf("place %d is %s, want %s", i, got, want)
		}
	}
	for name, ids := range map[string][]string{"a task of another agent": {mine[0], theirs}, "the agent itself": {mine[0], agent}, "a grandchild": {mine[0] + ".1"}} {
		records, calls, err := read(ids...)
		if !errors.Is(err, refusal.ErrNotOwner) || !strings.Contains(err.Error(), "Task not owned by agent") || records != nil || calls != 0 {
			t.Errorf("%s: %v, %v, in %d calls: want %q, and no records", name, records, err, calls, "Task not owned by agent")
		}
	}
	if records, _, err := read(mine[0], agent+".none"); !errors.Is(err, refusal.ErrNotFound) || records != nil {
		t.Errorf("a task that does not exist: %v, %v", records, err)
	}
}

func TestAgentCancelOneOfMany(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[operated]{slow(a, "a", 0), slow(a, "b", 10_000), slow(a, "c", 0)}
		if _, err := agentwait.Cancel(a, "not that one", all[1]); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, all...)
		return summary(s), err
	})
	p.gives(r, "completed [0 2] failed [] cancelled [1] pending []")
	if got := p.statuses(r.ID); got != "COMPLETED CANCELLED:cancelled COMPLETED" || at(r.CreatedAt, r.CompletedAt) != "1s" {
		t.Errorf("the tasks are %s after %s", got, at(r.CreatedAt, r.CompletedAt))
	}
}

// summary lists the places of the members of a wait by their ends.
func summary[T any](s *agentwait.Settled[T]) string {
	if s == nil {
		return ""
	}
	places := func(all []agentwait.Outcome[T]) (at []int) {
		for _, o := range all {
			at = append(at, o.Index)
		}
		return at
	}
	return fmt.Sprintf("completed %v failed %v cancelled %v pending %v",
		places(s.Completed), places(s.Failed), places(s.Cancelled), places(s.Pending))
}

// The wait cancels a source that takes more than two seconds, and the agent uses another source.
func TestAgentCancelAndReplace(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		v, err := agentwait.Await(a.With(agentwait.Wait{Limit: 2 * time.Second}), fetchData(a, "primary", 10_000))
		var late *agentwait.WaitTimeoutError
		if errors.As(err, &late) {
			v, err = agentwait.Await(a, fetchData(a, "fallback", 0))
		}
		return v.Data, err
	})
	p.gives(r, "data-from-fallback")
	if got := p.statuses(r.ID); got != "CANCELLED:wait_timeout COMPLETED" || at(r.CreatedAt, r.CompletedAt) != "2.101s" {
		t.Errorf("the tasks are %s after %s", got, at(r.CreatedAt, r.CompletedAt))
	}
}

// The results that three sources have after five seconds are enough: two completed, one is
// cancelled.
func TestAgentPartialResults(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		s, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: 5 * time.Second, Proceed: true}),
			fetchData(a, "weather", 0), fetchData(a, "news", 4000), fetchData(a, "social", 10_000))
		if err != nil {
			return "", err
		}
		return summary(s) + ": " + s.Completed[0].Value.Source + " " + s.Completed[1].Value.Source, nil
	})
	p.gives(r, "completed [0 1] failed [] cancelled [2] pending []: weather news")
	if got := p.statuses(r.ID); got != "COMPLETED COMPLETED CANCELLED:wait_timeout" {
		t.Errorf("the tasks are %s", got)
	}
}

// A task that ends while it is cancelled is either completed or cancelled, and the agent learns
// which.
func TestAgentCancelRaceWithComplete(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	begun := make(chan struct{}, 300)
	worker.Handle(p.w, "quick", func(_ context.Context, in string) (string, error) { begun <- struct{}{}; return in, nil })
	seen := map[queue.Status]int{}
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := make([]*agentwait.Future[string], 300)
		for i := range all {
			all[i] = agentwait.Schedule[string](a, "value", queue.Task{Kind: "quick"})
		}
		if err := a.Start(); err != nil {
			return "", err
		}
		for range 100 {
			<-begun
		}
		c, err := agentwait.Cancel(a, "too late?", all...)
		if err != nil {
			return "", err
		}
		s, err := agentwait.Peek(a, all...)
		if err != nil {
			return "", err
		}
		for i, o := range s.Outcomes {
			want := agentwait.CancelResult[string]{Cancelled: true}
			if o.Status == queue.Completed {
				want = agentwait.CancelResult[string]{AlreadyCompleted: true, Value: "value"}
			}
			if c[i] != want {
				t.Errorf("task %d is %s, and its cancel returned %+v", i, o.Status, c[i])
			}
			seen[o.Status]++
		}
		return "done", nil
	})
	p.gives(r, "done")
	t.Logf("of 300 tasks: %v", seen)
}

// A second cancel is not an error, and a replay gets the first answers.
func TestAgentCancelIdempotency(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	var answers []string
	r := p.act(func(a *agentwait.Agent) (string, error) {
		f := slow(a, "a", 10_000)
		for range 2 {
			c, err := agentwait.Cancel(a, "enough", f)
			if err != nil {
				return "", err
			}
			answers = append(answers, fmt.Sprintf("%v %v %q", c[0].Cancelled, c[0].AlreadyCancelled, c[0].Error))
		}
		return "done", agentwait.Sleep(a, time.Second)
	})
	p.gives(r, "done")
	want := []string{`true false ""`, `false true "enough"`, `true false ""`, `false true "enough"`}
	if !slices.Equal(answers, want) {
		t.Errorf("the cancels returned %v, want %v: twice, and again in the replay", answers, want)
	}
}

// A join with a task that was cancelled before fails at once: the agent does not wait. A join
// that skips cancelled tasks waits for the others.
func TestAgentJoinAllWithCancelledHandle(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		one, two := slow(a, "one", 10_000), slow(a, "two", 10_000)
		if _, err := agentwait.Cancel(a, "not wanted", one); err != nil {
			return "", err
		}
		if _, err := agentwait.JoinAll(a, one, two); !errors.Is(err, agentwait.ErrTaskCancelled) {
			return "", fmt.Errorf("the join: %w", err)
		}
		return "at once", nil
	})
	p.gives(r, "at once")
	if r.Epoch != 1 || at(r.CreatedAt, r.CompletedAt) != "0s" {
		t.Errorf("the agent ran %d times and took %s; want once and 0s", r.Epoch, at(r.CreatedAt, r.CompletedAt))
	}

	p = newPlay(t)
	r = p.act(func(a *agentwait.Agent) (string, error) {
		one, two := slow(a, "one", 10_000), slow(a, "two", 10_000)
		if _, err := agentwait.Cancel(a, "not wanted", one); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, one, two)
		if err != nil {
			return "", err
		}
		left, err := s.SkipCancelled()
		return fmt.Sprintf("%d %d %s", len(left), left[0].Index, left[0].Value.Op), err
	})
	p.gives(r, "1 1 two")
}

func TestAgentJoinAllOutcomes(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		gone := agentwait.Schedule[processed](a, operation{DelayMS: 10_000}, queue.Task{Kind: "slow-operation"})
		all := []*agentwait.Future[processed]{conditional(a, "a", false), conditional(a, "b", true), gone}
		if _, err := agentwait.Cancel(a, "not wanted", gone); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, all...)
		if err != nil {
			return "", err
		}
		var failed *queue.TaskFailedError
		o := s.Outcomes
		if v, err := o[0].IntoResult(); !o[0].IsSuccess() || err != nil || v.Processed != "processed:a" {
			t.Errorf("the first: %+v", o[0])
		}
		if _, err := o[1].IntoResult(); o[1].IsSuccess() || !errors.As(err, &failed) || failed.Kind != "conditional-fail-task" || failed.Index != 1 {
			t.Errorf("the second: %+v", o[1])
		}
		if _, err := o[2].IntoResult(); o[2].IsSuccess() || !errors.Is(err, agentwait.ErrTaskCancelled) {
			t.Errorf("the third: %+v", o[2])
		}
		return summary(s), nil
	})
	p.gives(r, "completed [0] failed [1] cancelled [2] pending []")
}
