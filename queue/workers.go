package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// WorkerState is the state that a worker reports.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining" // it finishes its tasks, and claims no more
)

// noWorker is refusal.ErrNotFound for a worker.
type noWorker struct{}

func (noWorker) Error() string        { return "no worker with this id has a lease" }
func (noWorker) Is(target error) bool { return target == refusal.ErrNotFound }

// StopWorker makes a worker drain, by the id under which it claims tasks. The worker claims no more
// tasks and finishes its present ones, as when its context ends; then its Run returns. The worker is
// notified at once, but StopWorker does not wait for it. If no worker with this id has a lease,
// StopWorker returns [refusal.ErrNotFound].
func (q *Queue) StopWorker(ctx context.Context, worker string) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("stop worker", worker, err)
	}
	if err := checkWorker(worker); err != nil {
		return refusal.Failed("stop worker", "", err)
	}
	lives := false
	for p := range q.Partitions() {
		words, err := worded(q.engine.Call(ctx, p, "stop_worker", worker))
		if err != nil {
			return refusal.Failed("stop worker", worker, err)
		}
		lives = lives || engine.Text(words[0]) == "OK"
	}
	if !lives {
		return refusal.Failed("stop worker", worker, noWorker{})
	}
	return nil
}

// Describe stores the state of a worker and a description of it in a partition, for people to read.
// about is opaque and has up to 4,096 bytes; if it is empty, the stored description is kept. If the
// worker has no lease in the partition, Describe returns [refusal.ErrNotFound].
func (a Attempts) Describe(ctx context.Context, partition int, worker string, state WorkerState, about string) error {
	if err := a.q.ready(ctx); err != nil {
		return refusal.Failed("describe worker", worker, err)
	}
	if err := checkWorker(worker); err != nil {
		return refusal.Failed("describe worker", "", err)
	}
	words, err := worded(a.q.engine.Call(ctx, partition, "describe_worker", worker, string(state), about))
	if err == nil && engine.Text(words[0]) == "MISSING" {
		err = noWorker{}
	}
	return refusal.Failed("describe worker", worker, err)
}
