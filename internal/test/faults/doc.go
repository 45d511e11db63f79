// Package faults has only tests: servers, networks and workers fail under load. Redis is killed,
// loses the end of its file, is replaced by its replica, is full, or its clock steps. Connections
// stall or drop everything. Worker processes are killed and stopped. Each test uses its own real
// redis-server, and real processes are killed or stopped.
//
// Every test keeps a ledger of the replies to its callers, and compares it at the end with the
// namespace. Replaying the events gives the records, and each task has ended once. Every
// acknowledged change exists, or the test logs that Redis lost it. An audit finds nothing.
//
// CURFEW_LONG=1 makes more rounds.
package faults
