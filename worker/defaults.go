package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/logonce"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Defaults sets the limits, retries and retention for tasks of a kind whose producer sets none. Run
// stores the defaults in the namespace, for producers in any language. If two workers set different
// defaults, the worker that started last wins. Defaults panics if the kind has defaults already, and
// after Run.
//
// Defaults apply only to tasks that are enqueued after they were stored, because the limits of a
// task are fixed when it is enqueued. If a producer can start before the first worker, it should
// call [queue.Queue.EnsureKind] with the same defaults before it enqueues. A kind of package typed
// does so.
func (w *Worker) Defaults(kind string, d queue.Defaults) {
	w.mustBeMade()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic(fmt.Sprintf("worker: give the defaults of kind %q before Run", kind))
	}
	if _, exists := w.defaults[kind]; exists {
		panic(fmt.Sprintf("worker: kind %q has defaults already", kind))
	}
	w.defaults[kind] = d
}

// WarnUnserved has Run log a warning if the worker takes no tasks from a queue, in which producers put
// the tasks of a kind that the worker handles. It is no error, because another worker can serve the
// queue. A kind of package typed calls it.
func (w *Worker) WarnUnserved(kind, queue string) {
	w.mustBeMade()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.homes[kind] = queue
}

// warnUnserved logs the kinds whose queue the worker does not serve. Run has set queues.
func (w *Worker) warnUnserved() {
	for _, kind := range slices.Sorted(maps.Keys(w.homes)) {
		if queue := w.homes[kind]; !slices.Contains(w.queues.names, queue) {
			w.log.Warn("This worker handles a kind and takes no tasks from its queue: add the queue to Config.Queues or Config.Strict, unless another worker serves it",
				"kind", kind, "queue", queue, "worker", w.id)
		}
	}
}

// DefineKinds stores the defaults of all kinds. Run does so before it starts anything. A program
// that both enqueues and runs tasks calls DefineKinds before it enqueues. A deployment can call it
// before it starts producers. DefineKinds returns an error if defaults are invalid, or if a call to
// Redis fails.
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

// defineKindsPatiently is DefineKinds for Run: it tries again while Redis is unreachable. When ctx
// ends it returns nil, because a shutdown during startup is no error of Run.
func (w *Worker) defineKindsPatiently(ctx context.Context) error {
	var trouble logonce.Trouble
	for delay := time.Duration(0); ; {
		err := w.DefineKinds(ctx)
		switch {
		case err == nil:
			if log, lasted := trouble.Over(); log {
				w.log.Info("The defaults of kinds are stored", "worker", w.id, "lasted_ms", lasted.Milliseconds())
			}
			return nil
		case errors.Is(err, refusal.ErrInvalid):
			return err
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, refusal.ErrUnavailable) && !errors.Is(err, refusal.ErrUnknown):
			return err
		}
		if log, unlogged := trouble.Failed(); log {
			w.log.Error("The defaults of kinds could not be stored; the worker tries again", "worker", w.id, "error", err, "not_logged_before", unlogged)
		}
		delay = longer(delay)
		sleep(ctx, delay)
	}
}
