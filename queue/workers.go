package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// WorkerState is what a worker says that it does.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining" // it finishes what it has, and takes nothing more
)

// StopWorker asks a worker to stop, by the id under which it claims tasks: it takes no more
// tasks, finishes those that it has, as when its context ends, and its Run returns. It is
// told at once, and StopWorker does not wait for it. If no such worker lives, it returns
// [refusal.ErrNotFound].
func (q *Queue) StopWorker(ctx context.Context, worker string) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("stop worker", worker, err)
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
		return refusal.Failed("stop worker", worker, refusal.ErrNotFound)
	}
	return nil
}

// Describe tells a partition what a worker is and what it does, for people to read. about is
// opaque, up to 4,096 bytes; if it is empty, what was said before holds. It returns
// [refusal.ErrNotFound] if the worker has no lease there.
func (a Attempts) Describe(ctx context.Context, partition int, worker string, state WorkerState, about string) error {
	if err := a.q.ready(ctx); err != nil {
		return refusal.Failed("describe worker", worker, err)
	}
	words, err := worded(a.q.engine.Call(ctx, partition, "describe_worker", worker, string(state), about))
	if err == nil {
		switch engine.Text(words[0]) {
		case "MISSING":
			err = refusal.ErrNotFound
		case "INVALID":
			err = refusal.Invalid(engine.Text(words[1]), "%s", engine.Text(words[2]))
		}
	}
	return refusal.Failed("describe worker", worker, err)
}
