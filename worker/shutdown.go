package worker

import (
	"context"
	"time"
)

// reportFor bounds how long the last outcomes may take to be reported once the
// handlers are gone or given up. Redis is away then; the leases decide.
const reportFor = 5 * time.Second

// drain ends the work: nothing new is taken; handlers may finish; then they are told
// to stop, and whoever does not is left behind, and his task given back.
func (w *Worker) drain(cancelRoot context.CancelCauseFunc) {
	w.stopping.Store(true)
	for _, l := range w.lanes {
		l.halt()
	}
	if !w.until(w.config.ShutdownTimeout, w.finished) {
		cancelRoot(ErrShutdown)
		w.until(w.config.ShutdownGrace, w.finished)
		if n := w.counts.running.Load(); n > 0 {
			w.log.Warn("Handlers ignore the end of their context: they are left behind, and their tasks given back", "handlers", n)
		}
		w.until(reportFor, w.reported)
	}
	for _, l := range w.lanes {
		l.close()
	}
}

// finished tells whether no handler runs and nothing is left to report.
func (w *Worker) finished() bool { return w.slots.allFree() && w.reported() }

func (w *Worker) reported() bool {
	for _, l := range w.lanes {
		if !l.reported() {
			return false
		}
	}
	return true
}

// until waits up to d for a condition that signal announces.
func (w *Worker) until(d time.Duration, holds func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !holds() {
		select {
		case <-w.progress:
		case <-timer.C:
			return holds()
		}
	}
	return true
}

// signal says that something came to an end, for who waits in until.
func (w *Worker) signal() {
	if w.stopping.Load() {
		notify(w.progress)
	}
}
