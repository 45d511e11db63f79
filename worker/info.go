package worker

import (
	"context"
	"time"
)

// Job is what a handler may know about its task.
type Job struct {
	ID, Kind, Queue string
	// Epoch grows each time the task is claimed. It is a fencing token: a store that
	// refuses a smaller epoch than it has seen is safe from an earlier attempt that still
	// runs.
	Epoch int64
	// Attempt is the number of this run, 1 for the first. Runs that gave the task back do
	// not count.
	Attempt int
	// Retries are the failed attempts before this one, of MaxRetries.
	Retries, MaxRetries int
	// Deadline is when the task's time is up, by the local clock; zero if it has none.
	Deadline  time.Time
	CreatedAt time.Time // by the clock of Redis
	// ClaimedAt is when the task was claimed, by the clock of Redis. ReceivedAt is when
	// this worker received it, by the local clock. They count as the same instant.
	ClaimedAt, ReceivedAt time.Time
	Worker                string // the id that the task was claimed by
	Journal               bool   // the task is an agent that has run before (package agentwait)
	Headers               map[string]string
}

type infoKey struct{}

// Info returns what is known about a handler's task. Outside of a handler it returns the
// zero Job.
func Info(ctx context.Context) Job {
	if ctx == nil {
		panic("worker: Info needs the context of the handler")
	}
	a, ok := ctx.Value(infoKey{}).(*attempt)
	if !ok {
		return Job{}
	}
	c := &a.claim
	return Job{
		ID: c.ID, Kind: c.Kind, Queue: c.Queue, Epoch: c.Epoch,
		Attempt: c.Attempt(), Retries: c.Retries, MaxRetries: c.MaxRetries,
		Deadline: local(c.Deadline, c.Now, a.received), CreatedAt: c.CreatedAt, Headers: c.Headers,
		ClaimedAt: c.Now, ReceivedAt: a.received, Worker: a.worker, Journal: c.Journal,
	}
}

// Value returns the attempt itself for infoKey. Info and Progress find it so.
func (a *attempt) Value(key any) any {
	if key == (infoKey{}) {
		return a
	}
	return a.Context.Value(key)
}
