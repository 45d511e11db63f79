// Package harness is for tests that need more than one call: a namespace on real servers,
// participants with connections of their own, worker processes that can be killed, and a check
// of everything at the end.
//
// A Stage is one namespace of one test. Participants are producers, workers and reapers in the
// test process (Another, Run, Reap), or child processes that run the test binary in a role
// (Spawn) and can die as in a crash. Main is the TestMain of such a binary.
//
// The Ledger records the replies that callers got. At the end a test compares it with Redis:
// Records and Events read, and EndedOnce, AsTold and Audit check. Other conditions are checked
// by the tests themselves.
package harness
