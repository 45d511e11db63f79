package requirements

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The requirements on graphs in the document on a workflow engine. Its runs and scopes are agents.

// flaky registers a kind that fails a number of times. It returns how often each task ran.
func (p *play) flaky(failures int) map[string]int {
	ran := map[string]int{}
	worker.Handle(p.w, "flaky", func(ctx context.Context, _ any) (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		id := worker.Info(ctx).ID
		if ran[id]++; ran[id] <= failures {
			return "", errAlways
		}
		return "done", nil
	})
	return ran
}

// A retry of an agent runs its handler again, and its waits return what they returned before.
func waitsRetryNothing(t *testing.T) {
	p := newPlay(t)
	ran := p.flaky(9)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		return agentwait.Await(a, agentwait.Schedule[string](a, nil, queue.Task{Kind: "flaky", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}}))
	})
	p.start()
	r := p.end(p.task(queue.Task{Kind: "agent", MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}}, nil))
	if r.Status != queue.Failed || r.Retries != 3 || ran[r.ID+".1"] != 3 || len(ran) != 1 {
		t.Errorf("the agent is %s after %d retries, the executions were %v; want FAILED, 3, and 3 of one task", r.Status, r.Retries, ran)
	}
}

func exhaustedFailsTheGraph(t *testing.T) {
	for _, c := range []struct {
		claim      string
		continueOn agentwait.Ending
		status     queue.Status
		next       int
	}{
		{"a node without retries left fails the graph", 0, queue.Failed, 0},
		{"unless it may continue on an error", agentwait.OnError, queue.Completed, 1},
		{"a node that may continue on another end fails the graph", agentwait.OnTimeout, queue.Failed, 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := newPlay(t)
			ran := p.flaky(9)
			r := p.act(func(a *agentwait.Agent) (string, error) {
				node := agentwait.Schedule[string](a, nil, queue.Task{Kind: "flaky", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}})
				if _, err := agentwait.Await(a, node.ContinueOn(c.continueOn)); err != nil {
					return "", err
				}
				next, err := agentwait.Await(a, process(a, "next")[0])
				return next.Processed, err
			})
			if r.Status != c.status || ran[r.ID+".1"] != 3 || len(p.children(r.ID)) != 1+c.next {
				t.Errorf("the agent is %s after %v, with %d nodes", r.Status, ran, len(p.children(r.ID)))
			}
		})
	}
}

func signalTimesOut(t *testing.T) {
	p := newPlay(t)
	limit, err := duration.Parse("1s")
	if err != nil {
		t.Fatal(err)
	}
	// The waiting node is a sub-agent with a timeout, which nothing resumes.
	agentwait.Handle(p.w, "suspended", func(a *agentwait.Agent, _ any) (string, error) {
		return agentwait.Await(a, agentwait.Signal[string](a, "resume"))
	})
	r := p.act(func(a *agentwait.Agent) (string, error) {
		_, err := agentwait.Await(a, agentwait.Schedule[string](a, nil, queue.Task{Kind: "suspended", Timeout: limit}))
		var late *queue.TaskTimedOutError
		if !errors.As(err, &late) || late.Type != "execution" {
			return "", err
		}
		_, err = agentwait.Await(a.With(agentwait.Wait{Limit: limit}), agentwait.Signal[string](a, "resume"))
		return limited(err)
	})
	p.gives(r, "completed [] pending [0]")
	if took := at(r.CreatedAt, r.CompletedAt); took != "2.002s" {
		t.Errorf("both took %s, want 2.002s", took)
	}
}

func continuesOnTimeout(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		node := timed(a, 60_000, 10*time.Second)
		if _, err := agentwait.Await(a, node.ContinueOn(agentwait.OnTimeout)); err != nil {
			return "", err
		}
		if _, err := agentwait.Value(a, node); !exceeded(err) {
			t.Errorf("the value of the allowed timeout is the error %v", err)
		}
		next, err := agentwait.Await(a, process(a, "next")[0])
		return next.Processed, err
	})
	p.gives(r, "processed:next")
	p = newPlay(t)
	r = p.act(func(a *agentwait.Agent) (string, error) {
		v, err := agentwait.Await(a, timed(a, 60_000, 10*time.Second))
		return v.Op, err
	})
	if r.Status != queue.Failed || !exceeded(errors.New(r.Error)) || at(r.CreatedAt, r.CompletedAt) != "10.001s" {
		t.Errorf("after a timeout that was not allowed the graph is %s: %q", r.Status, r.Error)
	}
}

// A run of 30 minutes has three generations of tasks, which run, are in line, or wait. All of
// them end with the run, and its hook runs once.
func runOutOfTime(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "branch", func(a *agentwait.Agent, _ any) (string, error) {
		_, err := agentwait.JoinAll(a, slow(a, "runs", 60*60_000),
			agentwait.Schedule[operated](a, nil, queue.Task{Kind: "nobody", Queue: "nowhere"}))
		return "", err
	})
	hooks := make(chan queue.HookPayload, 9)
	worker.Handle(p.w, "hook", func(_ context.Context, e queue.HookPayload) (string, error) { hooks <- e; return "", nil })
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		done := process(a, "done")[0]
		branch := func() *agentwait.Future[string] {
			return agentwait.Schedule[string](a, nil, queue.Task{Kind: "branch"})
		}
		return "", agentwait.AwaitAll(a, done, branch(), branch(), slow(a, "a", 60*60_000))
	})
	p.start()
	limit, err := duration.Parse("30m")
	if err != nil {
		t.Fatal(err)
	}
	id := p.task(queue.Task{Kind: "agent", Timeout: limit, Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "hook"}}}, nil)
	if r := p.end(id); r.Phase() != "Timeout" || r.Error != fixedError || at(r.CreatedAt, r.CompletedAt) != "30m0s" {
		t.Errorf("the run is %s (%s) after %s", r.Phase(), r.Error, at(r.CreatedAt, r.CompletedAt))
	}
	p.end(id + "!timeout")
	if n := len(hooks); n != 1 {
		t.Errorf("%d hooks ran", n)
	}
	ended := 0
	for _, name := range []string{".2", ".2.1", ".2.2", ".3", ".3.1", ".3.2", ".4"} {
		if r := p.record(id + name); r.Status != queue.Failed || r.TimeoutType != "workflow" || at(p.record(id).CreatedAt, r.CompletedAt) != "30m0s" {
			t.Errorf("%s is %s (%s) at %v", name, r.Status, r.TimeoutType, r.CompletedAt)
		}
		ended++
	}
	if r := p.record(id + ".1"); r.Status != queue.Completed {
		t.Errorf("the completed node is %s", r.Status)
	}
	if n := len(p.timeouts()); n != ended+1 {
		t.Errorf("%d timeout events, want %d", n, ended+1)
	}
}

func bothTimeouts(t *testing.T) {
	p := newPlay(t)
	agentwait.Handle(p.w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		s, err := agentwait.JoinAllSettled(a, timed(a, 60_000, 4*time.Second), timed(a, 60_000, 30*time.Second))
		return summary(s), err
	})
	p.start()
	id := p.task(queue.Task{Kind: "agent", Timeout: 10 * time.Second}, nil)
	r := p.end(id)
	var seen []string
	for _, c := range append(p.children(id), r) {
		seen = append(seen, fmt.Sprintf("%s %s at %s", c.Phase(), c.TimeoutType, at(r.CreatedAt, c.CompletedAt)))
	}
	want := []string{"Timeout execution at 4s", "Timeout workflow at 10s", "Timeout execution at 10s"}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the two nodes and the run: %q, want %q", seen, want)
	}
}

// To repeat a part of a graph, make it a task of its own: its owner schedules it again, and all
// its nodes are new.
func subTreeIsRetried(t *testing.T) {
	p := newPlay(t)
	times := 0
	worker.Handle(p.w, "second", func(context.Context, any) (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if times++; times < 3 {
			return "", errAlways
		}
		return "done", nil
	})
	agentwait.Handle(p.w, "part", func(a *agentwait.Agent, _ any) (string, error) {
		if _, err := agentwait.Await(a, process(a, "first")[0]); err != nil {
			return "", err
		}
		return agentwait.Run[string](a, nil, queue.Task{Kind: "second"})
	})
	r := p.act(func(a *agentwait.Agent) (v string, err error) {
		for range 3 {
			if v, err = agentwait.Run[string](a, nil, queue.Task{Kind: "part"}); err == nil || errors.Is(err, agentwait.ErrSuspended) {
				break
			}
		}
		return v, err
	})
	p.gives(r, "done")
	if got := p.statuses(r.ID); got != "FAILED FAILED COMPLETED" || times != 3 {
		t.Errorf("the parts are %s, the node ran %d times", got, times)
	}
	for n := range 3 {
		if got := p.statuses(fmt.Sprintf("%s.%d", r.ID, n+1)); !strings.HasPrefix(got, "COMPLETED ") {
			t.Errorf("the nodes of part %d are %s", n+1, got)
		}
	}
}

func suspensionIsTold(t *testing.T) {
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) { return "", agentwait.Sleep(a, time.Second) })
	for _, kind := range []string{"task_suspended", "task_resumed"} {
		if events := p.emitted(kind); len(events) != 1 || events[0]["task_id"] != r.ID {
			t.Errorf("the events %s are %v, want one", kind, events)
		}
	}
}
