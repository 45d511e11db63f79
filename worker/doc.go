// Package worker runs the handlers of tasks.
//
// A worker takes ready tasks from its queues in all partitions, runs as many at once
// as it has slots, and reports their outcomes. It promises:
//
//   - A handler's context ends when the task's time is up, when the attempt's time is
//     up, when Config.TaskTimeout has passed, when the task is cancelled, when the claim
//     is lost, and when the worker shuts down. [context.Cause] returns the reason. The
//     handler should then return. In any case Redis ends the task when its time is up, and
//     refuses later reports. A handler that ignores its context keeps its slot, but not its
//     task.
//   - When the context of Run ends, the worker takes no more tasks. Handlers have
//     Config.ShutdownTimeout to finish, and their outcomes are reported. After that their
//     contexts end with [ErrShutdown]. Tasks whose handlers then fail or do not return are
//     given back, and no retry is spent.
//   - After an outage of Redis the worker continues within about a second.
//
// A task can run twice at the same time: a worker that has lost its connection may still run
// the task when another worker has claimed it. Use Job.Epoch as a fencing token for the
// handler's own stores.
package worker
