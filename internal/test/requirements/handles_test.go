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
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// TestSeedS3 tests the requirements of the document on parallel tasks of agents, except the
// tests that it names (parallel_test.go, cancellation_test.go).
func TestSeedS3(t *testing.T) {
	for _, claim := range []struct {
		name string
		test func(*testing.T)
	}{
		{"S3.1 S3.17 S3.18 a task is scheduled without a wait, and its handle knows id and kind", scheduledIsAHandle},
		{"S3.3 S3.5 S3.9 a wait without a mode waits for all, and an unknown mode is refused", noModeIsAll},
		{"S3.6 S3.7 the results of 100 tasks take one call, in the requested order, repeated ids twice", resultsInOrder},
		{"S3.10 S3.20 10 parallel tasks take 2 calls from the first line to the result, and so do 100", callsOfAHundred},
		{"S3.12 S3.22 results are in the order of the call, whatever the order of the ends, after one wake", resultsOfAJoin},
		{"S3.23 of several ended tasks the first to end wins, not the first in the list", firstToEndWins},
		{"S3.25 S3.26 a waiting agent keeps its state, its counter, and what it waits for", whatAWaitKeeps},
		{"S3.28 a task cancelled before the wait is CANCELLED after the resume: a join fails, one that skips does not", cancelledBeforeTheWait},
		{"S3.32 a signal makes an agent give up its wait", signalAborts},
		{"S3.35 Peek returns the four states of a handle", statesOfAHandle},
		{"S3.36 S3.47 kept losers continue, and each attempt to cancel one has its answer", losersByHand},
		{"S3.37 a join of 30s returns the results that come within it", joinInTime},
		{"S3.37 a join of 30s outlives the process of its agent", joinOutlivesItsProcess},
		{"S3.39 of tasks with limits of 5s, 2s and 5s the slow one is Cancelled", individualTimeouts},
		{"S3.46 a task that still runs has no result, but an error that says so", stillRunning},
		{"S3.51 join n, losers in order of priority, and a grace for a loser", laterExtensions},
	} {
		t.Run(claim.name, func(t *testing.T) {
			t.Parallel()
			claim.test(t)
		})
	}
}

func scheduledIsAHandle(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		f := process(a, "a")[0]
		if f.ID() != a.ID()+".1" || f.Kind() != "process-item" || f.Index() != 0 {
			t.Errorf("the handle is of %s, kind %s, index %d", f.ID(), f.Kind(), f.Index())
		}
		if _, err := p.q.Get(a, f.ID()); worker.Info(a).Epoch == 1 && !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("before the wait the task exists: %v", err)
		}
		v, err := agentwait.Await(a, f)
		if err != nil {
			return "", err
		}
		w, err := agentwait.Run[processed](a, item{"b"}, queue.Task{Kind: "process-item"}) // schedule and await
		return v.Processed + " " + w.Processed, err
	})
	p.gives(r, "processed:a processed:b")
}

func noModeIsAll(t *testing.T) {
	s := frozen(t)
	id := s.enqueue(queue.Task{Kind: "agent"})
	c := s.claim()
	var children []queue.Task
	var members []claim.Member
	for n := range 3 {
		child := queue.Task{ID: fmt.Sprintf("%s.%d", id, n+1), Kind: "k"}
		children, members = append(children, child), append(members, claim.Member{ID: child.ID})
	}
	wait := claim.Suspension{Agent: id, Epoch: c.Epoch, Worker: "w", Children: children,
		Wait: claim.Wait{Entry: 1, Mode: "most", Digest: "d", Members: members}}
	before := s.dump()
	if _, err := claim.Of(s.q).Suspend(t.Context(), wait); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("an unknown mode: %v", err)
	}
	if after := s.dump(); after != before {
		t.Errorf("a refused call changed something:\n%s", after)
	}
	wait.Wait.Mode = ""
	if answer, err := claim.Of(s.q).Suspend(t.Context(), wait); err != nil || answer != nil {
		t.Fatalf("Suspend = %v, %v", answer, err)
	}
	e, err := inspect.Explain(t.Context(), s.q, id)
	if err != nil || e.Wait == nil || e.Wait.Mode != "all" || e.Wait.Members != 3 {
		t.Fatalf("the agent is explained as %+v, %v", e.Wait, err)
	}
	shown, err := json.Marshal(e.Wait)
	if want := fmt.Sprintf(`"wait_mode":"all","wait_for_tasks":[%q,%q,%q]`, id+".1", id+".2", id+".3"); err != nil || !strings.Contains(string(shown), want) {
		t.Errorf("the JSON of the wait is %s, %v, want %s", shown, err, want)
	}
	for n := range 3 {
		if got := s.record(id).Status; got != queue.Waiting {
			t.Errorf("after %d of 3 the agent is %s", n, got)
		}
		s.complete(s.claim())
	}
	if got := s.record(id).Status; got != queue.Pending {
		t.Errorf("after all 3 the agent is %s", got)
	}
}

func resultsInOrder(t *testing.T) {
	s := frozen(t)
	ids := s.enqueueAll(98, func(int) queue.Task { return queue.Task{Kind: "k"} })
	claims := s.fetch(98)
	for i, o := range []queue.Outcome{
		{Verb: queue.Complete, Result: []byte("7")},
		{Verb: queue.Fail, Error: "no"},
	} {
		s.settle(claims[i], o)
	}
	if _, err := s.q.Cancel(t.Context(), ids[2], "not wanted"); err != nil {
		t.Fatal(err)
	}
	last := s.enqueue(queue.Task{Kind: "k"})
	slices.Reverse(ids)
	ids = append(ids, last, ids[97])
	var records []*queue.Record
	var err error
	if n := s.scripts("", func() { records, err = s.q.GetAll(t.Context(), ids) }); n != 1 || err != nil {
		t.Errorf("%d calls (%v), want 1", n, err)
	}
	var seen []string
	for i, r := range records {
		if r.ID != ids[i] {
			t.Fatalf("result %d is of %s, want %s", i, r.ID, ids[i])
		}
		if i < 94 { // these still run
			if r.Status != queue.Running {
				t.Errorf("task %d is %s", i, r.Status)
			}
			continue
		}
		seen = append(seen, strings.TrimSpace(string(r.Status)+" "+string(r.Result)+r.Error))
	}
	want := []string{"RUNNING", "CANCELLED not wanted", "FAILED no", "COMPLETED 7", "PENDING", "COMPLETED 7"}
	if !slices.Equal(seen, want) {
		t.Errorf("the last are %q, want %q", seen, want)
	}
}

func resultsOfAJoin(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		none, err := agentwait.JoinAll[data](a)
		if err != nil || none == nil || len(none) != 0 {
			t.Errorf("a join without members: %v, %v", none, err)
		}
		all, err := agentwait.JoinAll(a, fetchData(a, "a", 300), fetchData(a, "b", 100), fetchData(a, "c", 200))
		if err != nil {
			return "", err
		}
		return all[0].Source + all[1].Source + all[2].Source, nil
	})
	p.gives(r, "abc")
	if resumed := p.emitted("task_resumed"); len(resumed) != 1 || at(r.CreatedAt, r.CompletedAt) != "300ms" {
		t.Errorf("the agent was resumed %d times and took %s, want once, 300ms", len(resumed), at(r.CreatedAt, r.CompletedAt))
	}
}

func firstToEndWins(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[data]{fetchData(a, "a", 300), fetchData(a, "b", 100), fetchData(a, "c", 200)}
		if err := agentwait.Sleep(a, time.Second); err != nil {
			return "", err
		}
		first, err := agentwait.Select(a, all...)
		if err != nil {
			return "", err
		}
		ok, err := agentwait.SelectOK(a, all...)
		return fmt.Sprintf("%d %s %d", first.Index, first.Value.Source, ok.Index), err
	})
	p.gives(r, "1 b 1")
}

func whatAWaitKeeps(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		var state map[string]string
		again, err := a.Restore(&state)
		if err != nil {
			return "", err
		}
		if !again {
			process(a, "a", "b")
			if err := a.Checkpoint(map[string]string{"user": "state"}); err != nil {
				return "", err
			}
		}
		first, second := agentwait.Child[processed](a, "1"), agentwait.Child[processed](a, "2")
		s := slow(a, "third", 1000)
		all, err := agentwait.JoinAll(a, first, second)
		if err != nil {
			return "", err
		}
		last, err := agentwait.Await(a, s)
		return all[0].Processed + last.Op + state["user"], err
	})
	p.start()
	id := p.agent("agent", nil)
	p.rest()
	journal := p.rdb.HGetAll(t.Context(), p.q.Root(0)+":journal:"+id).Val()
	if journal["state"] != `{"user":"state"}` || journal["children"] != "2" || !strings.HasPrefix(journal["1"], "wait satisfied ") {
		t.Errorf("the journal is %q", journal)
	}
	wait := p.rdb.HGetAll(t.Context(), p.q.Root(0)+":wait:"+id).Val()
	if wait["mode"] != "all" || wait["members"] != "3" || wait["entry"] != "2" {
		t.Errorf("the wait is %q", wait)
	}
	p.gives(p.end(id), "processed:athirdstate")
	if n := len(p.children(id)); n != 3 {
		t.Errorf("the agent had %d children, want 3", n)
	}
}

func cancelledBeforeTheWait(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[operated]{slow(a, "a", 0), slow(a, "b", 10_000)}
		if _, err := agentwait.Cancel(a, "not wanted", all[1]); err != nil {
			return "", err
		}
		s, err := agentwait.JoinAllSettled(a, all...) // the agent suspends here, and is resumed
		if err != nil {
			return "", err
		}
		if got := s.Outcomes[1].Status; got != queue.Cancelled {
			t.Errorf("after the resume the task is %s", got)
		}
		if _, err := agentwait.JoinAll(a, all...); !errors.Is(err, agentwait.ErrTaskCancelled) {
			t.Errorf("a join: %v", err)
		}
		left, err := agentwait.JoinAll(a.With(agentwait.Wait{SkipCancelled: true}), all...)
		return left[0].Op, err
	})
	p.gives(r, "a")
}

func signalAborts(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		work := agentwait.Schedule[any](a, operation{DelayMS: 10_000}, queue.Task{Kind: "slow-operation"})
		first, err := agentwait.Select(a, work, agentwait.Signal[any](a, "abort"))
		return fmt.Sprintf("%d %v", first.Index, first.Value), err
	})
	p.start()
	id := p.agent("agent", nil)
	p.pass(time.Second)
	if said, err := p.q.Signal(t.Context(), id, "abort", []byte(`"user"`)); err != nil || !said.Done {
		t.Fatalf("Signal = %+v, %v", said, err)
	}
	r := p.end(id)
	p.gives(r, "1 user")
	if got := p.statuses(id); got != "CANCELLED:not_needed" || at(r.CreatedAt, r.CompletedAt) != "1s" {
		t.Errorf("the work is %s after %s", got, at(r.CreatedAt, r.CompletedAt))
	}
}

func statesOfAHandle(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		all := []*agentwait.Future[processed]{
			agentwait.Schedule[processed](a, operation{DelayMS: 10_000}, queue.Task{Kind: "slow-operation"}),
			conditional(a, "b", false), conditional(a, "c", true),
			agentwait.Schedule[processed](a, nil, queue.Task{Kind: "nobody", Queue: "nowhere"}),
		}
		if _, err := agentwait.Cancel(a, "not wanted", all[3]); err != nil {
			return "", err
		}
		if err := agentwait.Sleep(a, time.Second); err != nil {
			return "", err
		}
		s, err := agentwait.Peek(a, all...)
		if err != nil {
			return "", err
		}
		var states []string
		for i, f := range all {
			if s.Outcomes[i].Status.Ended() != f.IsDone() {
				t.Errorf("Peek returns %s, and IsDone is %v", s.Outcomes[i].Status, f.IsDone())
			}
			states = append(states, fmt.Sprintf("%d:%d:%v:%v:%v", f.Index(), f.State(), f.State(), f.IsDone(), f.IsCancelled()))
		}
		return strings.Join(states, " "), nil
	})
	p.gives(r, "0:0:pending:false:false 1:1:completed:true:false 2:2:failed:true:false 3:3:cancelled:true:true")
}

func losersByHand(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		first, err := agentwait.Select(a.With(agentwait.Wait{Losers: agentwait.KeepLosers}),
			slow(a, "a", 100), slow(a, "b", 200), slow(a, "c", 5000), slow(a, "d", 5000))
		if err != nil {
			return "", err
		}
		if err := agentwait.Sleep(a, time.Second); err != nil {
			return "", err
		}
		attempts, err := agentwait.Cancel(a, "lost", first.Rest[0], first.Rest[1])
		if err != nil {
			return "", err
		}
		last, err := agentwait.Await(a, first.Rest[2]) // kept, so it runs to its end
		return fmt.Sprintf("%d, %s: %v, %s: %v, %s", first.Index, first.Rest[0].ID()[len(a.ID()):], attempts[0],
			first.Rest[1].ID()[len(a.ID()):], attempts[1], last.Op), err
	})
	p.gives(r, fmt.Sprintf("0, .2: %v, .3: %v, d", agentwait.CancelResult[operated]{AlreadyCompleted: true, Value: operated{"b", true}},
		agentwait.CancelResult[operated]{Cancelled: true}))
	// The sleep is the fifth child.
	if got := p.statuses(r.ID); got != "COMPLETED COMPLETED CANCELLED:cancelled COMPLETED COMPLETED" {
		t.Errorf("the tasks are %s", got)
	}
}

// A task that ends at the limit is in time, one that ends a millisecond later is not.
func joinInTime(t *testing.T) {
	for _, c := range []struct {
		ms   int
		want string
	}{{30_000, "a b at 30s"}, {30_001, "completed [0] pending [1] at 30.001s"}} {
		t.Run(fmt.Sprint(c.ms), func(t *testing.T) {
			p := newPlay(t)
			r := p.act(func(a *agentwait.Agent) (string, error) {
				all, err := agentwait.JoinAll(a.With(agentwait.Wait{Limit: 30 * time.Second}), slow(a, "a", 20_000), slow(a, "b", c.ms))
				if err != nil {
					return limited(err)
				}
				return all[0].Op + " " + all[1].Op, nil
			})
			var said string
			if err := json.Unmarshal(r.Result, &said); err != nil {
				t.Fatal(err)
			}
			if got := said + " at " + at(r.CreatedAt, r.CompletedAt); got != c.want {
				t.Errorf("the join gives %q, want %q", got, c.want)
			}
		})
	}
}

// The process that began the wait is gone when its limit passes. Another process gets the result.
func joinOutlivesItsProcess(t *testing.T) {
	p := newPlay(t)
	code := func(a *agentwait.Agent, _ any) (string, error) {
		fast := process(a, "fast")[0]
		open := agentwait.Schedule[processed](a, nil, queue.Task{Kind: "nobody", Queue: "nowhere"})
		_, err := agentwait.JoinAll(a.With(agentwait.Wait{Limit: 30 * time.Second}), fast, open)
		var timeout *agentwait.TimeoutResult[processed]
		if errors.As(err, &timeout) {
			return fmt.Sprintf("completed %v pending %s", timeout.Values, timeout.Unfinished[0].ID()[len(a.ID()):]), nil
		}
		return "", err
	}
	agentwait.Handle(p.w, "agent", code)
	p.start()
	id := p.agent("agent", nil)
	p.rest()
	p.stop()
	p.pass(time.Minute)
	if got := p.record(id).Status; got != queue.Pending {
		t.Errorf("without a worker the agent is %s, want PENDING: woken by the limit", got)
	}
	p.w = p.another()
	agentwait.Handle(p.w, "agent", code)
	p.start()
	p.gives(p.end(id), "completed [{0 {processed:fast}}] pending .2")
	if got := p.statuses(id); got != "COMPLETED CANCELLED:wait_timeout" {
		t.Errorf("the tasks are %s", got)
	}
	if late := p.emitted("wait_timed_out"); len(late) != 1 || late[0]["timeout_duration_ms"] != "30000" {
		t.Errorf("the events of waits are %v, want one of 30000 ms", late)
	}
}

func individualTimeouts(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		s, err := agentwait.JoinAllSettled(a, fetchData(a, "fast-1", 1000).Within(5*time.Second),
			fetchData(a, "slow", 10_000).Within(2*time.Second), fetchData(a, "fast-2", 3000).Within(5*time.Second))
		return summary(s), err
	})
	p.gives(r, "completed [0 2] failed [] cancelled [1] pending []")
	if c := p.children(r.ID)[1]; at(r.CreatedAt, c.CompletedAt) != "2s" || at(r.CreatedAt, r.CompletedAt) != "3s" {
		t.Errorf("the slow one ended after %s, the agent after %s", at(r.CreatedAt, c.CompletedAt), at(r.CreatedAt, r.CompletedAt))
	}
}

func stillRunning(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		f := slow(a, "a", 10_000)
		s, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: time.Second, Proceed: true, KeepPending: true}), f)
		if err != nil {
			return "", err
		}
		if _, err := s.Outcomes[0].IntoResult(); !errors.Is(err, agentwait.ErrTaskStillRunning) || s.Outcomes[0].IsSuccess() {
			t.Errorf("its result: %v", err)
		}
		if _, err := agentwait.Value(a, f); !errors.Is(err, agentwait.ErrTaskStillRunning) {
			t.Errorf("its value: %v", err)
		}
		return summary(s), nil
	})
	p.gives(r, "completed [] failed [] cancelled [] pending [0]")
}

func laterExtensions(t *testing.T) {
	p := newPlay(t)
	cleaned := make(chan struct{})
	worker.Handle(p.w, "careful", func(ctx context.Context, _ any) (string, error) {
		defer close(cleaned)
		return "", p.sleep(ctx, never)
	})
	r := p.act(func(a *agentwait.Agent) (string, error) {
		two, err := agentwait.JoinN(a.With(agentwait.Wait{Losers: agentwait.CancelLosers}), 2,
			slowOf(a, 300, 0), slowOf(a, 100, 0), slowOf(a, 200, 0),
			slowOf(a, 10_000, 0), slowOf(a, 10_000, 3), slowOf(a, 10_000, 1),
			agentwait.Schedule[operated](a, nil, queue.Task{Kind: "careful", CancelGrace: time.Minute}))
		if err != nil {
			return "", err
		}
		return fmt.Sprint(two[0].Index, two[1].Index), nil
	})
	p.gives(r, "1 2")
	<-cleaned
	var order []string
	for _, e := range p.emitted("task_cancelled") {
		id := strings.TrimPrefix(e["task_id"].(string), r.ID)
		if e["reason"] == "not_needed" && id != ".7" { // its grace may last longer than this test
			order = append(order, id)
		}
	}
	if want := []string{".5", ".6", ".1", ".4"}; !slices.Equal(order, want) {
		t.Errorf("the losers ended in the order %v, want %v", order, want)
	}
	if events := p.emitted("task_cancelling"); len(events) != 1 || events[0]["task_id"] != r.ID+".7" {
		t.Errorf("the task_cancelling events are %v, want one, of .7", events)
	}
}

func slowOf(a *agentwait.Agent, ms, priority int) *agentwait.Future[operated] {
	return agentwait.Schedule[operated](a, operation{DelayMS: ms}, queue.Task{Kind: "slow-operation", Priority: priority})
}
