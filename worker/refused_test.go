package worker_test

import (
	"context"
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
