package requirements

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// The tests that the document on parallel tasks of agents names, with its values. A real worker
// runs them, with a clock that the test moves.

// A waiting agent shows all three tasks. The queue of the children is paused until the test has
// seen that.
func TestAgentParallelTasksJoinAll(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	if _, err := p.q.Pause(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	p.start()
	id := p.agent("parallel-tasks-agent", items{[]string{"a", "b", "c"}})
	p.rest()
	e, err := inspect.Explain(t.Context(), p.q, id)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.record(id); r.Status != queue.Waiting || e.Wait == nil || e.Wait.Mode != queue.WaitAll || e.Wait.Members != 3 || e.Wait.Label != "all of 3 (1 2 3)" {
		t.Errorf("the agent is %s and explained as %+v, want WAITING for all of 3", r.Status, e.Wait)
	}
	if got, want := p.statuses(id), "PENDING PENDING PENDING"; got != want {
		t.Errorf("its children are %s, want %s", got, want)
	}
	if _, err := p.q.Resume(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	p.gives(p.end(id), parallel{3, []processed{{"processed:a"}, {"processed:b"}, {"processed:c"}}})
	if r := p.record(id); r.Epoch != 2 {
		t.Errorf("the agent ran %d times, want 2", r.Epoch)
	}
}

func TestAgentFanOutFanIn(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	id := p.agent("fan-out-fan-in-agent", items{})
	p.gives(p.end(id), fanned{3, 3, []string{"processed:apple", "processed:banana", "processed:cherry"}})
	if got, want := p.statuses(id), "COMPLETED COMPLETED COMPLETED"; got != want {
		t.Errorf("its children are %s, want %s", got, want)
	}
}

func TestAgentRacingTasksSelect(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	id := p.agent("racing-tasks-agent", race{PrimaryDelayMS: 2000, FallbackDelayMS: 500})
	r := p.end(id)
	p.gives(r, raced{1, data{"fallback", "data-from-fallback"}})
	if took := at(r.CreatedAt, r.CompletedAt); took != "500ms" {
		t.Errorf("the race took %s, want 500ms", took)
	}
	p.gives(p.end(p.agent("racing-tasks-agent", race{PrimaryDelayMS: 10})), raced{0, data{"primary", "data-from-primary"}})
}

// The result lists how the cancel of each loser ended.
func TestAgentRacingTasksWithCancellation(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	id := p.agent("racing-tasks-with-cancel-agent", race{PrimaryDelayMS: 5000, FallbackDelayMS: 500})
	p.gives(p.end(id), racedWithCancel{raced{1, data{"fallback", "data-from-fallback"}}, []cancelAttempt{{0, true, queue.Cancelled}}})
	if got := p.statuses(id); got != "CANCELLED:not_needed COMPLETED" {
		t.Errorf("the tasks are %s", got)
	}
}

// Ten parallel operations of a second take a second.
func TestAgentParallelLargeBatch(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		var all []*agentwait.Future[operated]
		for i := range 10 {
			all = append(all, slow(a, fmt.Sprintf("op-%d", i), 0))
		}
		results, err := agentwait.JoinAll(a, all...)
		var ops []string
		for _, o := range results {
			ops = append(ops, o.Op)
		}
		return strings.Join(ops, " "), err
	})
	p.gives(r, "op-0 op-1 op-2 op-3 op-4 op-5 op-6 op-7 op-8 op-9")
	if took := at(r.CreatedAt, r.CompletedAt); took != "1s" || len(p.children(r.ID)) != 10 {
		t.Errorf("%d children took %s, want 10 in 1s", len(p.children(r.ID)), took)
	}
}

// The second of three tasks fails. The error names it, and the others complete.
func TestAgentParallelWithFailure(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	r := p.act(func(a *agentwait.Agent) (string, error) {
		_, err := agentwait.JoinAll(a, conditional(a, "a", false), conditional(a, "b", true), conditional(a, "c", false))
		return "", err
	})
	want := "Task 'conditional-fail-task' (id=" + r.ID + ".2) failed: told to fail: b"
	if r.Status != queue.Failed || r.Error != want {
		t.Errorf("the agent is %s: %q, want FAILED: %q", r.Status, r.Error, want)
	}
	if got, want := p.statuses(r.ID), "COMPLETED FAILED COMPLETED"; got != want {
		t.Errorf("its children are %s, want %s", got, want)
	}
}

// An agent that asks for all outcomes completes, and tells which task failed.
func TestAgentParallelWithFailures(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	id := p.agent("parallel-with-failures-agent", []condition{{"a", false}, {"b", true}, {"c", false}})
	p.gives(p.end(id), failures{[]processed{{"processed:a"}, {"processed:c"}},
		[]string{"Task 'conditional-fail-task' (id=" + id + ".2) failed: told to fail: b"}})
	if got, want := p.statuses(id), "COMPLETED FAILED COMPLETED"; got != want {
		t.Errorf("its children are %s, want %s", got, want)
	}
}

// A worker dies after its agent has started three tasks and before the agent waits for them.
// Another worker runs the agent again: it gets the same three tasks, and each runs once.
func TestAgentParallelIdempotency(t *testing.T) {
	t.Parallel()
	s := frozen(t)
	var mu sync.Mutex
	ran, scheduled := map[string]int{}, [][]string{}
	cast := func(w *worker.Worker, started func()) {
		w.HandleRaw("process-item", func(ctx context.Context, _ []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[worker.Info(ctx).ID]++
			return []byte(`{}`), nil
		})
		agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
			all := process(a, "a", "b", "c")
			if err := a.Start(); err != nil {
				return "", err
			}
			mu.Lock()
			scheduled = append(scheduled, []string{all[0].ID(), all[1].ID(), all[2].ID()})
			mu.Unlock()
			started()
			_, err := agentwait.JoinAll(a, all...)
			return "done", err
		})
	}
	id := s.enqueue(queue.Task{Kind: "agent"})
	dead := worker.New(s.q, worker.Config{NoReaper: true, Concurrency: 1})
	started, over := make(chan struct{}), make(chan struct{})
	cast(dead, func() { close(started); <-over })
	stop := s.run(dead)
	<-started
	for s.sweep().GivenBack == 0 { // again, if a heartbeat came in between
		s.advance(time.Minute)
	}

	// The dead worker returns later. Its calls are refused.
	live := worker.New(s.q, worker.Config{})
	cast(live, func() {})
	for {
		again, err := live.RunOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again == nil {
			break
		}
	}
	close(over)
	stop()
	if r := s.record(id); r.Status != queue.Completed || r.Epoch != 3 || r.Fields["children"] != "3" {
		t.Errorf("the agent is %s after %d claims, with %s children; want COMPLETED, 3, 3", r.Status, r.Epoch, r.Fields["children"])
	}
	want := []string{id + ".1", id + ".2", id + ".3"}
	if len(scheduled) != 3 {
		t.Errorf("the agent scheduled %d times, want 3: before the loss, after it, and woken", len(scheduled))
	}
	for _, ids := range scheduled {
		if fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("it scheduled %v, want %v", ids, want)
		}
	}
	if fmt.Sprint(ran) != fmt.Sprint(map[string]int{want[0]: 1, want[1]: 1, want[2]: 1}) {
		t.Errorf("the executions were %v, want each task once", ran)
	}
}

func TestAgentMixedParallelSequential(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	id := p.agent("mixed-parallel-agent", nil)
	p.gives(p.end(id), mixed{
		Phase1: []processed{{"processed:phase1-a"}, {"processed:phase1-b"}}, Phase2: operated{"sequential", true},
		Phase3:  []processed{{"processed:phase3-a"}, {"processed:phase3-b"}, {"processed:phase3-c"}},
		Success: true,
	})
	if n := len(p.children(id)); n != 6 {
		t.Errorf("it had %d children, want 2, 1 and 3", n)
	}
}

func TestConcurrentAgentsParallelTasks(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.start()
	ids := map[string]string{}
	for _, name := range []string{"x", "y", "z"} {
		ids[name] = p.agent("parallel-tasks-agent", items{[]string{name + "1", name + "2", name + "3"}})
	}
	total := 0
	for name, id := range ids {
		p.gives(p.end(id), parallel{3, []processed{{"processed:" + name + "1"}, {"processed:" + name + "2"}, {"processed:" + name + "3"}}})
		for _, c := range p.children(id) {
			if total++; c.Epoch != 1 || c.Status != queue.Completed {
				t.Errorf("child %s is %s after %d executions", c.ID, c.Status, c.Epoch)
			}
		}
	}
	if total != 9 {
		t.Errorf("%d executions, want 9", total)
	}
}

// A hundred tasks with options take one call. The second time all of them are known.
func TestAgentBatchApiScheduling(t *testing.T) {
	t.Parallel()
	s := frozen(t)
	owner := s.enqueue(queue.Task{Kind: "agent"})
	s.claim()
	batch := make([]queue.Task, 100)
	for i := range batch {
		batch[i] = queue.Task{ID: fmt.Sprintf("%s.%d", owner, i+1), Kind: "process-item", Queue: "items", Payload: []byte(`{}`),
			MaxRetries: 3, Timeout: time.Minute}
	}
	deadline := s.now.Add(time.Minute)
	for _, made := range []bool{true, false} {
		var receipts []queue.Receipt
		var err error
		if n := s.scripts("", func() { receipts, err = s.q.EnqueueAll(t.Context(), batch) }); n != 1 {
			t.Errorf("a hundred tasks took %d calls, want 1", n)
		}
		if err != nil || len(receipts) != 100 {
			t.Fatalf("EnqueueAll: %d receipts, %v", len(receipts), err)
		}
		for i, r := range receipts {
			if r.Err != nil || r.ID != batch[i].ID || !r.Deadline.Equal(deadline) || r.New != made {
				t.Fatalf("receipt %d is %+v, want %s until %v, New %v", i, r, batch[i].ID, deadline, made)
			}
		}
		s.advance(time.Second)
	}
	if n := s.record(owner).Fields["children"]; n != "100" {
		t.Errorf("the agent has %s children, want 100", n)
	}
	if r := s.record(owner + ".100"); r.Queue != "items" || r.MaxRetries != 3 || r.Deadline.Sub(r.CreatedAt) != time.Minute || r.Priority != 0 {
		t.Errorf("the last is %v", r.Fields)
	}
	// A refused task has its own answer. In a suspend it would refuse the whole call.
	batch[0].Payload = []byte(`{"other":1}`)
	receipts, err := s.q.EnqueueAll(t.Context(), batch[:2])
	if err != nil || !errors.Is(receipts[0].Err, refusal.ErrConflict) || receipts[1].Err != nil {
		t.Errorf("with another payload: %+v, %v", receipts, err)
	}
}
