package worker

import (
	"context"
	"time"
)

// Job is what a handler can know about its task.
type Job struct {
	ID, Kind, Queue string
	// Epoch grows each time that the task is claimed: a fencing token. A store that
	// refuses a smaller one than it has seen is safe from a predecessor that is
	// still running.
	Epoch int64
	// Attempt is which run this is, 1 for the first; being given back does not count.
	Attempt int
	// Retries are the failed attempts before this one, of MaxRetries.
	Retries, MaxRetries int
	// Deadline is when the task is out of time, by this machine's clock; zero: never.
	Deadline  time.Time
	CreatedAt time.Time // by the clock of Redis
	// ClaimedAt is when it was handed out, by the clock of Redis, and ReceivedAt the same
	// moment by this machine's.
	ClaimedAt, ReceivedAt time.Time
	Worker                string // whose claim it is
	Journal               bool   // it is an agent that ran before (package agentwait)
	Headers               map[string]string
}

type infoKey struct{}

// Info tells a handler about its task. Outside of a handler it is the zero Job.
func Info(ctx context.Context) Job {
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
