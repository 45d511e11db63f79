// Package queue defines tasks and what can be done with them: enqueue, read, cancel, and wait
// for a result. Package worker runs tasks, and package agentwait agents.
//
// A task ends exactly once: COMPLETED, FAILED or CANCELLED. Its deadline is fixed when it is
// created and never moves. A task whose time is up is FAILED with the error "Task exceeded
// deadline", whether or not a reaper runs: every call that changes a task ends it first if its
// time is up.
//
// All state is in Redis and changes in Lua (package lua). The clock is that of Redis. A call whose
// reply is lost is repeated with the same identity, so it has one effect. If no reply comes within
// 30 s, the error is [refusal.ErrUnknown].
package queue
