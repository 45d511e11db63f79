// Package races holds tests in which everybody is in everybody's way: completers,
// reapers and cancellers on the same tasks at the same moment, processes that are
// killed at any instruction, answers that are lost after the script has run, a
// hundred thousand deadlines in one millisecond; agents that wake while they are cancelled,
// killed between any two of their calls, or wait for ten thousand. They run on a real Redis,
// and where a process is to die it is a real one. It has no code of its own.
//
// Every test ends by taking account of the whole namespace: each task has ended
// once, its one event says what its record says, what callers were told is true, the
// counters add up, and an audit finds nothing.
//
// CURFEW_LONG=1 makes more rounds: 10,000 of each race between the calls of agents.
package races
