// Package stages sets the scene for tests that need more than a call and its answer: a
// namespace on real servers, participants with connections of their own, worker processes
// that are killed, and an account of everything at the end.
//
// A Stage is one namespace of one test. Participants are producers, workers and reapers
// of the test (Another, Run, Reap), or processes (Spawn): the test binary again, as a
// child that plays a role and dies as by a crash. Main is the TestMain of such a binary.
//
// At the end a test takes account. Its Ledger has what callers were told. Records, Events,
// EndedOnce and Audit read and judge what is there. What must be true beyond that depends
// on the test, and stands with it.
package stages
