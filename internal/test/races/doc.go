// Package races has only tests, in which calls compete. Workers, reapers and cancellers act on the
// same tasks at the same time. Processes are killed at any instruction, and replies are lost after
// the script has run. 100,000 deadlines are in one millisecond. Agents wake while they are
// cancelled, are killed between any two of their calls, or wait for 10,000 members. The tests use a
// real Redis, and kill real processes.
//
// At its end each test checks the whole namespace. Each task has ended once, and its terminal event
// agrees with its record. The replies to callers were true, the counters are right, and an audit
// finds nothing.
//
// CURFEW_LONG=1 makes more rounds: 10,000 of each race between the calls of agents.
package races
