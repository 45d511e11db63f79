package worker

import (
	"context"
	"fmt"
	"maps"

	"github.com/curfew-dev/curfew/queue"
)

// Defaults sets the limits, retries and retention of tasks of a kind whose producer sets
// none. Run stores them in the namespace, for producers in any language. If two workers
// set different ones, those of the worker that started last apply. Defaults panics if the
// kind has some already, and after Run.
//
// They apply to tasks that are enqueued after they were stored, and never to a task that is there already: a
// task's limits are fixed when it is enqueued. Where producers may start before the first worker, have them
// call [queue.Queue.DefineKind] with the same defaults before they enqueue.
func (w *Worker) Defaults(kind string, d queue.Defaults) {
	w.made()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic(fmt.Sprintf("worker: give the defaults of kind %q before Run", kind))
	}
	if _, twice := w.defaults[kind]; twice {
		panic(fmt.Sprintf("worker: kind %q has defaults already", kind))
	}
	w.defaults[kind] = d
}

// DefineKinds stores the defaults of all kinds. Run does it before anything else. A program that
// enqueues and works calls it before it enqueues; a deployment may call it before it starts producers.
func (w *Worker) DefineKinds(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defaults := maps.Clone(w.defaults)
	w.mu.Unlock()
	for kind, d := range defaults {
		if err := w.q.DefineKind(ctx, kind, d); err != nil {
			return fmt.Errorf("worker: the defaults of kind %q: %w", kind, err)
		}
	}
	return nil
}
