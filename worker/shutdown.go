package worker

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// reportTimeout bounds how long the worker tries to report the last outcomes after all handlers have
// returned or were given up. If Redis is away longer, the leases decide.
const reportTimeout = 5 * time.Second

// drain takes no more tasks and waits for the handlers. After ShutdownTimeout it ends their contexts.
// Handlers that do not return within ShutdownGrace are given up, and their tasks are given back.
func (w *Worker) drain(cancelRoot context.CancelCauseFunc) {
	w.stopping.Store(true)
	for _, p := range w.partitions {
		p.stopFetching()
		p.describe(queue.WorkerDraining, "")
	}
	if !w.waitUntil(w.config.ShutdownTimeout, w.drained) {
		cancelRoot(ErrShutdown)
		w.waitUntil(w.config.ShutdownGrace, w.drained)
		if n := w.counts.running.Load(); n > 0 {
			w.log.Warn("Handlers ignore the end of their context: Run no longer waits for them, and their tasks are given back", "handlers", n)
		}
		w.waitUntil(reportTimeout, w.reported)
	}
	for _, p := range w.partitions {
		p.close()
	}
}

// fail ends Run with an error: no call to Redis can succeed.
func (w *Worker) fail(err error) {
	select {
	case w.failed <- err:
	default: // Run already has an error
	}
}

// abandon ends all handlers without reporting their outcomes. Handlers that do not return within
// ShutdownGrace are given up.
func (w *Worker) abandon(cancelRoot context.CancelCauseFunc) {
	w.stopping.Store(true)
	for _, p := range w.partitions {
		p.close()
		p.stopFetching()
	}
	cancelRoot(ErrShutdown)
	w.waitUntil(w.config.ShutdownGrace, w.slots.allFree)
}

// drained reports whether no handler runs and all outcomes are reported.
func (w *Worker) drained() bool { return w.slots.allFree() && w.reported() }

func (w *Worker) reported() bool {
	for _, p := range w.partitions {
		if !p.reported() {
			return false
		}
	}
	return true
}

// waitUntil waits up to d for a condition, and reports whether it holds. It checks the condition at
// each drainStep.
func (w *Worker) waitUntil(d time.Duration, holds func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !holds() {
		select {
		case <-w.drainSteps:
		case <-timer.C:
			return holds()
		}
	}
	return true
}

// drainStep is called whenever a handler, a sender or a call has ended.
func (w *Worker) drainStep() {
	if w.stopping.Load() {
		notify(w.drainSteps)
	}
}
