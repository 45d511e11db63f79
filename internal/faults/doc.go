// Package faults holds tests in which what Curfew stands on fails while it is at
// work: Redis is killed, cut short, replaced by its replica, filled up, told another
// time; connections stall or swallow everything; worker processes are killed and
// stopped. They run on real redis-servers, each test on its own, and where a process
// is to die or to freeze it is a real one. It has no code of its own.
//
// Every test keeps a ledger of what its callers were told, and ends by comparing it
// with what is there: the events, folded, give the records; each task has ended once;
// what was acknowledged is there, or is told as lost where Redis itself lost it; and
// an audit finds nothing.
//
// CURFEW_LONG=1 makes more rounds.
package faults
