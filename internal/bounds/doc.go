// Package bounds holds tests that no command keeps Redis long, however much a namespace holds:
// what operators ask is asked in parts, and what falls due is done in parts. It has no code of its
// own.
//
// CURFEW_LONG=1 measures with 2,000,000 tasks, and with 300,000 that are due in one millisecond.
package bounds
