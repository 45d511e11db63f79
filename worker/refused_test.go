package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// An outcome can be refused although the task is still the worker's. The log has the reason.
func TestAWorkerLogsWhyAnOutcomeWasRefused(t *testing.T) {
	s := newStage(t, redistest.Shared(t).Client(t), 1)
	w := worker.New(s.q, worker.Config{})
	id := s.enqueue(queue.Task{Kind: "k"})
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		return s.rdb.Set(ctx, s.q.Root(0)+":state:"+id, "garbage", 0).Err()
	}))
	ran, err := w.RunOne(s.ctx)
	if err != nil || ran == nil || ran.Verdict.Word != queue.VerdictBroken {
		t.Fatalf("RunOne = %+v, %v, want the verdict BROKEN", ran, err)
	}
	if s.logs.Count(`level=WARN msg="An outcome was refused" `) != 1 || s.logs.Count(`why="its state cannot be read"`) != 1 {
		t.Errorf("the log has no warning with the reason")
	}
}

// A result that is not of the task's type fails the attempt: the task is retried or fails, with the reason, and its
// lease is not lost.
func TestAResultOfAnotherTypeFailsTheAttempt(t *testing.T) {
	s := newStage(t, redistest.Shared(t).Client(t), 1)
	results := []string{`{"n":"x"}`, `{"n":300}`, `{"n":3}`}
	handle := func(ctx context.Context, _ []byte) ([]byte, error) {
		return []byte(results[worker.Info(ctx).Attempt-1]), nil
	}
	task := queue.Task{Kind: "k", ResultType: "{n: int8}", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}}
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", handle)
	id := s.enqueue(task)
	for n, want := range []string{"n is a string", "n is out of range", ""} {
		ran, err := w.RunOne(s.ctx)
		if err != nil || !ran.Verdict.Accepted() || ran.Report.Verb == queue.Complete != (want == "") || !strings.HasSuffix(ran.Report.Error, want) {
			t.Fatalf("attempt %d: %+v, %v, want %s", n, ran, err, want)
		}
	}
	if r, err := s.q.Get(s.ctx, id); err != nil || string(r.Result) != `{"n":3}` || r.Retries != 2 {
		t.Errorf("Get = %+v, %v", r, err)
	}
	task.MaxRetries, task.Retry = 1, `tasks.k.msg contains "n is"`
	for _, task := range []queue.Task{{Kind: "k", ResultType: "{n: int8}"}, task} {
		id := s.enqueue(task)
		ctx, stop := context.WithCancel(s.ctx)
		w := worker.New(s.q, worker.Config{})
		w.HandleRaw("k", handle)
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		r, err := s.q.Wait(s.ctx, id)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{"the result must be JSON of type {n: int8}: n is a string", "the result must be JSON of type {n: int8}: n is out of range"}[task.MaxRetries]
		if err != nil || r.Status != queue.Failed || r.Error != want || r.Retries != task.MaxRetries {
			t.Errorf("Wait = %+v, %v, want FAILED after %d retries with %q", r, err, task.MaxRetries, want)
		}
	}
}
