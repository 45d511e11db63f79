package redistest

import "testing"

// NoRace skips a test if the race detector is on. It is the first line of a test in which
// the detector has nothing to find: there is one goroutine; or all that meet meet in Redis,
// each with a client of its own; or processes, which the detector does not look into. And
// of one that measures what the detector changes. why says which.
//
// It is not for a test that is merely slow, and never for one that looks for goroutines
// that are left behind.
func NoRace(tb testing.TB, why string) {
	tb.Helper()
	if race {
		tb.Skip("not under the race detector: " + why)
	}
}
