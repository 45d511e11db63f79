package worker

import (
	"context"
	"time"
)

// reportTimeout bounds the report of the last outcomes, after all handlers have returned or were
// given up. If Redis is unreachable longer, the tasks are given back when the leases expire.
const reportTimeout = 5 * time.Second

// drain takes no more tasks and waits for the handlers. After ShutdownTimeout it ends their
// contexts. Handlers that do not return within ShutdownGrace are given up, and their tasks are given
// back. If fail is called meanwhile, drain returns that error at once.
func (w *Worker) drain(cancelRoot context.CancelCauseFunc) error {
	w.stopping.Store(true)
	defer w.closePartitions()
	for _, p := range w.partitions {
		p.stopFetching()
		p.describe()
	}
	if drained, failed := w.waitUntil(w.config.ShutdownTimeout, w.drained); drained || failed != nil {
		return failed
	}
	cancelRoot(ErrShutdown)
	if drained, failed := w.waitUntil(w.config.ShutdownGrace, w.drained); drained || failed != nil {
		return failed
	}
	if n := w.counts.running.Load(); n > 0 {
		w.log.Warn("Handlers ignore the end of their context: Run no longer waits for them, and their tasks are given back", "worker", w.id, "handlers", n)
	}
	_, failed := w.waitUntil(reportTimeout, w.reported)
	return failed
}

// fail ends Run with an error, because no call to Redis can succeed. Only the first call has an
// effect.
func (w *Worker) fail(err error) {
	w.failOnce.Do(func() { w.failed <- err })
}

// abandon ends all handlers without reporting their outcomes, after an error of fail. Handlers that
// do not return within ShutdownGrace are given up.
func (w *Worker) abandon(cancelRoot context.CancelCauseFunc) {
	w.stopping.Store(true)
	w.closePartitions()
	for _, p := range w.partitions {
		p.stopFetching()
	}
	cancelRoot(ErrShutdown)
	w.waitUntil(w.config.ShutdownGrace, w.slots.allFree)
}

func (w *Worker) closePartitions() {
	for _, p := range w.partitions {
		p.close()
	}
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
// each drainStep. An error of fail ends the wait.
func (w *Worker) waitUntil(d time.Duration, condition func() bool) (holds bool, failed error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !condition() {
		select {
		case <-w.drainSteps:
		case failed := <-w.failed:
			return false, failed
		case <-timer.C:
			return condition(), nil
		}
	}
	return true, nil
}

// drainStep makes waitUntil check its condition. It is called when a handler, a sender or a call has
// ended.
func (w *Worker) drainStep() {
	if w.stopping.Load() {
		notify(w.drainSteps)
	}
}
