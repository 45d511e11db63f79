package bench

import (
	"context"
	"time"
)

// Place is the Redis server of a comparison, and a name for what is put there.
type Place struct {
	// URL is redis://, rediss:// or unix://, of one server.
	URL string
	// Namespace is what a System begins its keys with, if it can choose.
	Namespace string
}

// System is a job queue that Compare measures. A comparison uses it from one goroutine
// and for one turn at a time: Open, calls of the others, Close. Only Enqueue is called
// from several goroutines at once.
//
// What a System may be able to do beyond that has interfaces of its own: Lister,
// PendingDeadlines, RunningDeadlines and Recoverer. Where a System does not implement
// one, the table says "never".
type System interface {
	// Name is the System's column in the table and its name in JSON: a-z, 0-9 and _.
	Name() string
	// Version is told beside the name. It may be empty.
	Version() string
	// Prefixes are what all keys of the System begin with. On a server that the
	// comparison did not start, these keys must not be there before, and are removed.
	Prefixes(namespace string) []string

	// Open connects to a server that has no key of the System.
	Open(ctx context.Context, at Place) error
	// Prepare makes a task of each payload, in this process, and returns how many calls
	// of Enqueue take them to Redis: one for each task, unless the System has no way to
	// enqueue a lone one among many.
	Prepare(payloads [][]byte) (calls int)
	// Enqueue makes the call of number i.
	Enqueue(ctx context.Context, i int) error
	// Work starts workers. They call handled once for each task, and the task is done.
	Work(ctx context.Context, w Workers, handled func()) (Crew, error)
	// Check returns an error unless n tasks came in since Open, and all were completed.
	Check(ctx context.Context, n int) error
	// Close gives back what Open opened. The keys stay.
	Close() error
}

// Workers says how many workers run in this process, and how many handlers each of them
// may call at once.
type Workers struct{ Servers, Concurrency int }

// Crew are workers that run.
type Crew struct {
	// Failed has the error if a worker stops by itself. It may be nil.
	Failed <-chan error
	// Stop ends the workers, and returns when all that they handled is settled.
	Stop func() error
}

// Lister is a System with a call for many tasks. The others are measured with one call a
// task from 64 goroutines.
type Lister interface {
	// EnqueueAll takes all that was prepared to Redis.
	EnqueueAll(ctx context.Context) error
}

// PendingDeadlines is a System that ends a task whose time is up while no worker has it.
type PendingDeadlines interface {
	// PendingLags enqueues the tasks of a load, and returns how late after its deadline
	// each was seen to have ended, by an observer with a connection of its own.
	PendingLags(ctx context.Context, l DeadlineLoad) ([]time.Duration, error)
}

// RunningDeadlines is a System that ends a task whose time is up while its handler runs.
type RunningDeadlines interface {
	// RunningLags runs the tasks of a load, whose handlers wait for their contexts to end.
	RunningLags(ctx context.Context, l DeadlineLoad) (RunningLags, error)
}

// RunningLags is how late after the deadlines of running tasks something happened.
type RunningLags struct {
	Noticed   []time.Duration // an observer with a connection of its own saw the end
	Cancelled []time.Duration // the handler's context ended
}

// Recoverer is a System whose tasks run again when the process that ran them has died.
type Recoverer interface {
	// Put enqueues a task to a queue of that name.
	Put(ctx context.Context, line string) error
	// Hold works on that queue alone, calls began when a task has arrived, and does not
	// finish it. It runs in a process that is going to be killed.
	Hold(ctx context.Context, line string, began func()) error
	// Take starts one worker for all of these queues. It calls started when a handler
	// begins, with the name of the task's queue.
	Take(ctx context.Context, lines []string, started func(line string)) (Crew, error)
	// Interval is the time between two looks or heartbeats, whichever decides how long it
	// takes. Kills are spread over it, so that they are not in step with it.
	Interval() time.Duration
}
