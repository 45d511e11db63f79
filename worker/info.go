package worker

import (
	"context"
	"time"
)

// Job describes the task of a handler, and its attempt.
type Job struct {
	ID, Kind, Queue string
	// Epoch grows each time the task is claimed. Use it as a fencing token: a store that refuses any
	// epoch below the greatest it has seen is safe from an earlier attempt that still runs, even an
	// attempt of an earlier task with the same name.
	Epoch int64
	// Attempt is the number of this attempt, 1 for the first. Runs that gave the task back do
	// not count.
	Attempt int
	// Retries is the number of failed attempts before this one. MaxRetries is the greatest number of
	// retries.
	Retries, MaxRetries int
	// Deadline is the instant at which the task's time is up, by the local clock; zero if there is
	// none.
	Deadline time.Time
	// AttemptDeadline is the instant at which the time of this attempt is up, by the local clock. It
	// is zero unless it is before Deadline.
	AttemptDeadline time.Time
	CreatedAt       time.Time // by the clock of Redis
	// ClaimedAt is the instant of the claim, by the clock of Redis. ReceivedAt is the instant at
	// which this worker received it, by the local clock. To convert an instant from one clock to the
	// other, the worker takes both as the same instant.
	ClaimedAt, ReceivedAt time.Time
	Worker                string // id of the worker that has the claim
	Journal               bool   // the task is an agent that has run before (package agentwait)
	Headers               map[string]string
}

type infoKey struct{}

// Info returns the Job of the handler that ctx belongs to. If ctx is not the context of a handler,
// Info returns the zero Job. It panics if ctx is nil.
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
		Deadline: local(c.Deadline, c.Now, a.received), AttemptDeadline: local(c.AttemptDeadline, c.Now, a.received),
		CreatedAt: c.CreatedAt, Headers: c.Headers,
		ClaimedAt: c.Now, ReceivedAt: a.received, Worker: a.worker, Journal: c.Journal,
	}
}

// Value returns the attempt itself for infoKey. Info, Progress and DeadlineNear use it.
func (a *attempt) Value(key any) any {
	if key == (infoKey{}) {
		return a
	}
	return a.Context.Value(key)
}
