package redistest

import "testing"

// NoRace skips a test if the race detector is on. It is the first line of a test in which the
// detector cannot find anything:
//
//   - the test has one goroutine,
//   - its goroutines share only Redis, through clients of their own,
//   - it runs processes, which the detector does not see,
//   - or it measures what the detector slows down.
//
// why says which.
//
// It is not for a test that is merely slow, and never for one that checks for leaked goroutines.
func NoRace(tb testing.TB, why string) {
	tb.Helper()
	if race {
		tb.Skip("not under the race detector: " + why)
	}
}
