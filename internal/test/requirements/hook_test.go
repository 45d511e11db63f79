package requirements

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/eventlog"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

func retryInProgress(t *testing.T) {
	s := running(t)
	var mu sync.Mutex
	var inputs []string
	var seen []queue.Status
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", func(ctx context.Context, in []byte) ([]byte, error) {
		job := worker.Info(ctx)
		mu.Lock()
		inputs = append(inputs, string(in))
		seen = append(seen, s.record(job.ID).Status)
		mu.Unlock()
		if _, err := s.q.Get(ctx, job.ID+"!failure"); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("a hook exists before the end of attempt %d: %v", job.Attempt, err)
		}
		return nil, errAlways
	})
	hooks := make(chan queue.HookPayload, 9)
	worker.Handle(w, "hook", func(_ context.Context, e queue.HookPayload) (string, error) { hooks <- e; return "", nil })
	stop := s.run(w)
	id := s.enqueue(queue.Task{Kind: "k", Payload: []byte("input"), MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}, Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "hook"}}})
	if _, err := s.result(id); err == nil {
		t.Error("a failed task has a result")
	}
	if _, err := s.result(id + "!failure"); err != nil {
		t.Error(err)
	}
	stop()
	if want := []string{"input", "input", "input"}; !slices.Equal(inputs, want) {
		t.Errorf("the attempts got %q, want %q", inputs, want)
	}
	if want := []queue.Status{queue.Running, queue.Running, queue.Running}; !slices.Equal(seen, want) {
		t.Errorf("the task was %v, want %v", seen, want)
	}
	if n := len(hooks); n != 1 {
		t.Fatalf("%d hooks ran, want 1", n)
	}
	if e := <-hooks; e.TaskID != id || e.Event != "failure" || e.Error != errAlways.Error() {
		t.Errorf("the payload of the hook is %+v", e)
	}
	if ends := s.ends(id); ends != 1 {
		t.Errorf("%d terminal events, want 1", ends)
	}
}

// ends returns the number of terminal events of a task.
func (s *stage) ends(id string) (n int) {
	s.Helper()
	messages, err := s.rdb.XRange(s.Context(), s.q.EventsKey(0), "-", "+").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range eventlog.Events(messages...) {
		kind := fmt.Sprint(m["kind"])
		if m["task_id"] == id && slices.Contains([]string{"task_completed", "task_failed", "task_cancelled", "task_timed_out"}, kind) {
			n++
		}
	}
	return n
}

func completedIsNotStopped(t *testing.T) {
	s := frozen(t)
	stops := s.rdb.Subscribe(t.Context(), s.q.Root(0)+":stop:w")
	defer stops.Close()
	if _, err := stops.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.complete(s.claim())
	if c, err := s.q.Cancel(t.Context(), done, ""); err != nil || c.Done || c.Status != queue.Completed {
		t.Fatalf("Cancel of a completed task = %+v, %v", c, err)
	}
	late := s.enqueue(queue.Task{Kind: "k", Timeout: time.Second})
	s.claim()
	// The sweep meets both: the index still has the completed task, and has it first.
	s.rdb.ZAdd(t.Context(), s.q.Root(0)+":deadlines", redis.Z{Score: 1, Member: done})
	s.advance(2 * time.Second)
	if swept := s.sweep(); swept.TimedOut != 1 {
		t.Errorf("the sweep ended %d tasks, want 1", swept.TimedOut)
	}
	if message := await.Receive(t, stops.Channel(), "the worker is told"); message.Payload != late+" 1 timeout" {
		t.Errorf("the first message to the worker is %v, want that %s timed out", message, late)
	}
	s.timedOut(late)
	if r := s.record(done); r.Status != queue.Completed || string(r.Result) != `"done"` || s.ends(done) != 1 {
		t.Errorf("the completed task is %s: %s, with %d ends", r.Status, r.Result, s.ends(done))
	}
}

func hookRunsOnce(t *testing.T) {
	s := running(t)
	var ran atomic.Int64
	w := worker.New(s.q, worker.Config{NoReaper: true})
	w.HandleRaw("hook", func(context.Context, []byte) ([]byte, error) { ran.Add(1); return nil, nil })
	s.run(w)
	for range 5 {
		s.reap(reaper.Config{})
	}
	ids := s.enqueueAll(40, func(i int) queue.Task {
		return queue.Task{Kind: "nobody", Queue: "nowhere", Timeout: time.Duration(1+i) * 5 * time.Millisecond, Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "hook"}}}
	})
	for _, id := range ids {
		await.Until(t, "the hook has run", func() bool {
			r, err := s.q.Get(t.Context(), id+"!timeout")
			return err == nil && r.Status == queue.Completed
		})
	}
	if n := ran.Load(); n != int64(len(ids)) || len(s.timeouts()) != len(ids) {
		t.Errorf("%d hooks ran for %d timeouts of %d tasks, want one each", n, len(s.timeouts()), len(ids))
	}
}
