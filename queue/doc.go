// Package queue is what a task is and what can be done to it: enqueue, read,
// cancel, wait for its result; and, for those who build workers and reapers,
// fetch, settle, heartbeat and sweep.
//
// A task ends exactly once: COMPLETED, FAILED or CANCELLED. Its deadline is fixed
// when it is created and never moves; what is out of time is FAILED with the error
// "Task exceeded deadline", whether or not a reaper runs, because every script
// that touches a task ends it first if its time is up.
//
// All state is in Redis and changes in Lua (package lua). The clock is that of
// Redis. A call whose answer is lost is repeated with the same identity, so it has
// one effect; if the answer cannot be had within 30 s the error is [refusal.ErrUnknown].
package queue
