// Package await makes tests wait for a condition. Receive waits for a signal. Until polls a
// condition for which there is no signal.
package await

import (
	"testing"
	"time"
)

// Patience is how long a test waits before it fails, unless its binary must end earlier; see Limit. It is longer than any machine
// takes, however busy it is: only a hang exceeds it.
const Patience = 3 * time.Minute

// spare is the part of the time of a test binary that is left for a failure, so that the other tests of the binary still report.
const spare = 5 * time.Second

// Limit returns how long a test may still wait: Patience, or until shortly before the deadline of the test binary (go test -timeout).
func Limit(tb testing.TB) time.Duration {
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := t.Deadline(); ok {
			return min(Patience, max(time.Until(deadline)-spare, time.Second))
		}
	}
	return Patience
}

// pause is the time between two polls. It is short, so that polling adds little to a test.
const pause = 2 * time.Millisecond

// Until returns when holds returns true, and fails the test if it does not within Limit. It is for conditions without a signal: the
// state of Redis, a file, a process.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	limit := Limit(tb)
	for over := time.Now().Add(limit); !holds(); {
		if time.Now().After(over) {
			tb.Fatalf("not within %v: %s", limit.Round(time.Second), what)
		}
		time.Sleep(pause)
	}
}

// Receive returns the next value of a channel, and fails the test if none comes within Limit.
func Receive[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	limit := Limit(tb)
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		tb.Fatalf("not within %v: %s", limit.Round(time.Second), what)
		panic("unreachable")
	}
}
