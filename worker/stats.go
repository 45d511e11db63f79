package worker

import "sync/atomic"

// Stats are counts since New. Running and Stray are counts of now.
type Stats struct {
	// Started are the attempts whose handler was called.
	Started int64
	// Completed, Failed and Released are the outcomes that Redis accepted. A failed
	// attempt may run again.
	Completed, Failed, Released int64
	// Suspended are the attempts that gave up their claim themselves: agents that wait.
	Suspended int64
	// Refused are the outcomes that came too late: the task had ended, or was claimed
	// again.
	Refused int64
	// Dropped are the outcomes that could not be reported. Their tasks are given back
	// after the next heartbeat, which does not name their claims.
	Dropped int64
	// Stopped are the attempts that Redis told to stop.
	Stopped int64
	// Unknown are the tasks given back because their kind has no handler here.
	Unknown int64

	// Running are the handlers that run now. Stray are those of them that have lost
	// their claim and have not returned yet.
	Running, Stray int64
}

type counts struct {
	started, completed, failed, released, suspended atomic.Int64
	refused, dropped, stopped, unknown              atomic.Int64
	running, stray                                  atomic.Int64
}

// Stats returns the counts. It is not a snapshot: they may change while it reads.
func (w *Worker) Stats() Stats {
	w.made()
	c := &w.counts
	return Stats{
		Started: c.started.Load(), Completed: c.completed.Load(), Failed: c.failed.Load(), Released: c.released.Load(),
		Suspended: c.suspended.Load(), Refused: c.refused.Load(), Dropped: c.dropped.Load(),
		Stopped: c.stopped.Load(), Unknown: c.unknown.Load(), Running: c.running.Load(), Stray: c.stray.Load(),
	}
}
