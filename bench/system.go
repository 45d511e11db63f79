package bench

import (
	"context"
	"time"
)

// Place is the Redis server of a comparison, and the namespace to use there.
type Place struct {
	// URL is the URL of one server: redis://, rediss:// or unix://.
	URL string
	// Namespace is the prefix of a System's keys, if the System can choose it. The default of
	// Compare is "bench".
	Namespace string
}

// System is a job queue that Compare measures. Each turn calls Open, then other methods, then
// Close. Only Enqueue is called from several goroutines at once, also while Work runs.
//
// A System can also implement Lister, PendingDeadlines, RunningDeadlines and Recoverer. If it
// does not implement one of the last three, the table says "never". See Lister for the first.
type System interface {
	// Name is the System's column in the table and its name in JSON: a letter, and then
	// a-z, 0-9 and _.
	Name() string
	// Version is shown beside the name. It can be empty.
	Version() string
	// Prefixes returns the prefixes of all keys of the System. A given server must have no such keys before the
	// comparison, and they are removed after it.
	Prefixes(namespace string) []string

	// Open connects to a server that has no key of the System.
	Open(ctx context.Context, at Place) error
	// Prepare makes a task of each payload, in this process. It returns how many calls of
	// Enqueue are needed: one for each task, unless the System can only enqueue in batches.
	Prepare(payloads [][]byte) (calls int)
	// Enqueue makes call number i, from 0.
	Enqueue(ctx context.Context, i int) error
	// Work starts workers. They call handled once for each task, and complete the task.
	Work(ctx context.Context, w Workers, handled func()) (Crew, error)
	// Check returns an error unless n tasks were enqueued since Open and all were completed.
	Check(ctx context.Context, n int) error
	// Close releases the resources of Open. It leaves the keys.
	Close() error
}

// Workers is the number of workers in this process, and the number of handlers that each runs at once.
type Workers struct{ Servers, Concurrency int }

// Crew is a set of running workers.
type Crew struct {
	// Failed receives an error if a worker stops by itself. It can be nil.
	Failed <-chan error
	// Stop ends the workers, and returns when all tasks that they handled are settled.
	Stop func() error
}

// Lister is a System with a call for many tasks. A System that is not a Lister is measured with
// one call for each task, from 64 goroutines.
type Lister interface {
	// EnqueueAll enqueues all prepared tasks.
	EnqueueAll(ctx context.Context) error
}

// PendingDeadlines is a System that ends a task at its deadline while no worker has it.
type PendingDeadlines interface {
	// PendingLags enqueues the tasks of a load. It returns how long after its deadline an
	// observer saw each of them ended. The observer reads the state from Redis.
	PendingLags(ctx context.Context, l DeadlineLoad) ([]time.Duration, error)
}

// RunningDeadlines is a System that ends a task at its deadline while its handler runs.
type RunningDeadlines interface {
	// RunningLags runs the tasks of a load, whose handlers wait for their contexts to end.
	RunningLags(ctx context.Context, l DeadlineLoad) (RunningLags, error)
}

// RunningLags has the times after the deadlines of running tasks at which their ends were seen.
type RunningLags struct {
	Noticed   []time.Duration // an observer that reads from Redis saw the end
	Cancelled []time.Duration // the handler's context ended
}

// Recoverer is a System whose tasks run again when the process that ran them has died.
type Recoverer interface {
	// Put enqueues a task to the queue of that name.
	Put(ctx context.Context, line string) error
	// Hold works on that queue only, calls began when it has a task, and does not finish the
	// task. It runs in a process that is killed.
	Hold(ctx context.Context, line string, began func()) error
	// Take starts one worker for all of these queues. It calls started when a handler
	// begins, with the name of the task's queue.
	Take(ctx context.Context, lines []string, started func(line string)) (Crew, error)
	// Interval is the time between two polls or heartbeats, whichever decides how long the
	// recovery takes. Kills are spread over it, so that they are not in step with it.
	Interval() time.Duration
}
