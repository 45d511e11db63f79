package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// WorkerState is the state that a worker reports.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining" // it finishes its tasks, and claims no more
)

// StopWorker makes a worker drain, by the id under which it claims tasks. The worker claims no more
// tasks and finishes its present ones, as when its context ends; then its Run returns. The worker is
// notified at once, but StopWorker does not wait for it. If no worker with this id has a lease,
// StopWorker returns [refusal.ErrNotFound].
func (q *Queue) StopWorker(ctx context.Context, worker string) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("stop worker", worker, err)
	}
	if err := names.CheckWorker(worker); err != nil {
		return refusal.Failed("stop worker", "", err)
	}
	lives := false
	for p := range q.Partitions() {
		words, err := engine.Words(q.engine.Call(ctx, p, "stop_worker", worker))
		if err != nil {
			return refusal.Failed("stop worker", worker, err)
		}
		lives = lives || engine.Text(words[0]) == "OK"
	}
	if !lives {
		return refusal.Failed("stop worker", worker, engine.ErrNoWorker)
	}
	return nil
}
