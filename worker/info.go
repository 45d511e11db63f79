package worker

import (
	"context"
	"time"
)

// Job describes the task of a handler, and its attempt.
type Job struct {
	ID, Kind, Queue string
	// Epoch grows each time the task is claimed. It is a fencing token: a store that refuses
	// any epoch below the greatest it has seen is safe from an earlier attempt that still
	// runs, also from one of an earlier task with the same name.
	Epoch int64
	// Attempt is the number of this attempt, 1 for the first. Runs that gave the task back do
	// not count.
	Attempt int
	// Retries is the number of failed attempts before this one. MaxRetries is how many retries
	// the task can have.
	Retries, MaxRetries int
	// Deadline is when the task's time is up, by the local clock; zero if it has none.
	Deadline time.Time
	// AttemptDeadline is when the time of this attempt is up, by the local clock; zero if that is
	// not before Deadline.
	AttemptDeadline time.Time
	CreatedAt       time.Time // by the clock of Redis
	// ClaimedAt is when the task was claimed, by the clock of Redis. ReceivedAt is when this
	// worker received it, by the local clock. Both are taken as the same instant when an
	// instant is converted from one clock to the other.
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
