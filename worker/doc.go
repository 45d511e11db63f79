// Package worker runs the handlers of tasks.
//
// A worker takes ready tasks from its queues in all partitions, runs as many at
// once as it has slots, and reports how they ended. It promises:
//
//   - A handler's context ends when the task's time is up, when its attempt's time
//     is up, when Config.TaskTimeout has passed, when the task is cancelled or
//     belongs to somebody else, and when the worker shuts down. [context.Cause] says
//     which. It is a courtesy: Redis ends what is late whether the handler obeys or
//     not, and refuses what it reports afterwards. A handler that ignores its
//     context keeps its slot, but not its task.
//   - When the context of Run ends, nothing new is taken; handlers have
//     Config.ShutdownTimeout to finish, and what they finish is reported. Then their
//     contexts end with [ErrShutdown], and what has not succeeded is given back,
//     which spends no retry.
//   - An outage of Redis stops nothing for good: the worker goes on within about a
//     second of its return.
//
// A handler may run twice for one attempt's worth of work: a worker that was cut off
// can still be running when its successor starts. Job.Epoch is a fencing token for
// the handler's own stores.
package worker
