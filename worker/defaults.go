package worker

import (
	"context"
	"fmt"
	"maps"

	"github.com/curfew-dev/curfew/queue"
)

// Defaults says what tasks of a kind have where their producer says nothing: limits,
// retries, retention. Run stores them in the namespace, for producers in any language;
// of two workers that disagree the one that started last is right. It panics for a kind
// that was given some already, and after Run.
func (w *Worker) Defaults(kind string, d queue.Defaults) {
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

// DefineKinds stores the defaults that the worker was given. Run does it first of all;
// a program that enqueues before any worker runs may do it by itself.
func (w *Worker) DefineKinds(ctx context.Context) error {
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
