package worker

import "sync/atomic"

// Stats are counts since the worker was made, and two that hold now.
type Stats struct {
	// Started are the handlers that were called.
	Started int64
	// Completed, Failed and Released are the outcomes that Redis accepted. A failed
	// attempt may run again.
	Completed, Failed, Released int64
	// Suspended are the attempts that gave up their claim themselves: agents that wait.
	Suspended int64
	// Refused are the outcomes that came too late: the task had ended, or was
	// claimed anew.
	Refused int64
	// Dropped are the outcomes that could not be delivered. Their tasks are given
	// back when Redis misses them.
	Dropped int64
	// Stopped are the attempts that Redis told to stop.
	Stopped int64
	// Unknown are the tasks given back because their kind has no handler here.
	Unknown int64

	// Running are the handlers that run now; of them, Stray are those whose task is
	// no longer theirs, and that have not returned yet.
	Running, Stray int64
}

type counts struct {
	started, completed, failed, released, refused, suspended, dropped, stopped, unknown, running, stray atomic.Int64
}

// Stats returns the counts. They are not of one instant.
func (w *Worker) Stats() Stats {
	c := &w.counts
	return Stats{
		Started: c.started.Load(), Completed: c.completed.Load(), Failed: c.failed.Load(), Released: c.released.Load(),
		Refused: c.refused.Load(), Suspended: c.suspended.Load(), Dropped: c.dropped.Load(), Stopped: c.stopped.Load(), Unknown: c.unknown.Load(),
		Running: c.running.Load(), Stray: c.stray.Load(),
	}
}
