package worker

import "sync/atomic"

// Stats holds counts of a worker since New. Slots, Running and Stray are current values.
type Stats struct {
	// Started counts the attempts whose handler was called.
	Started int64
	// Completed, Failed and Released count the outcomes that Redis accepted. The task of a
	// failed attempt can run again.
	Completed, Failed, Released int64
	// Suspended counts the attempts that gave up their claim themselves: agents that wait.
	Suspended int64
	// Refused counts the outcomes that came too late: the task had ended, or was claimed
	// again.
	Refused int64
	// Dropped counts the outcomes that could not be reported. Redis gives their tasks back, because
	// the next heartbeat does not name their claims.
	Dropped int64
	// Stopped counts the attempts that Redis stopped.
	Stopped int64
	// Unknown counts the tasks that were given back because their kind has no handler here.
	Unknown int64
	// Diverged counts the agents that were given back because this program cannot replay them.
	Diverged int64

	// Slots is the number of handlers that can run at the same time: Config.Concurrency.
	Slots int64
	// Running counts the handlers that run now. Stray counts the running handlers that have
	// lost their claim.
	Running, Stray int64
}

type counts struct {
	started, completed, failed, released, suspended atomic.Int64
	refused, dropped, stopped, unknown, diverged    atomic.Int64
	running, stray                                  atomic.Int64
}

// Stats returns the counts of the worker. They are not a snapshot: they can change while Stats reads
// them.
func (w *Worker) Stats() Stats {
	w.mustBeMade()
	c := &w.counts
	return Stats{
		Slots:   int64(w.config.Concurrency),
		Started: c.started.Load(), Completed: c.completed.Load(), Failed: c.failed.Load(), Released: c.released.Load(),
		Suspended: c.suspended.Load(), Refused: c.refused.Load(), Dropped: c.dropped.Load(),
		Stopped: c.stopped.Load(), Unknown: c.unknown.Load(), Diverged: c.diverged.Load(), Running: c.running.Load(), Stray: c.stray.Load(),
	}
}
