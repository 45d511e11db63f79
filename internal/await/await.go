// Package await makes tests wait for a condition. Receive waits for a signal. Until polls a
// condition for which there is no signal.
package await

import (
	"testing"
	"time"
)

// Patience is how long Until and Receive wait before they fail the test. It is long on purpose:
// it is not a measure of speed.
const Patience = 30 * time.Second

// Stall is the longest time for which a machine that others use too may stop a process. A limit on how soon something
// happens adds it. What would happen without the code that the test is for must take longer.
const Stall = 2 * time.Second

// pause is the time between two polls. It is short, so that polling adds little to a test.
const pause = 2 * time.Millisecond

// Until returns when holds returns true, and fails the test if it does not within Patience. It
// is for conditions without a signal: the state of Redis, a file, a process.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for over := time.Now().Add(Patience); !holds(); {
		if time.Now().After(over) {
			tb.Fatalf("not within %v: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}

// Receive returns the next value of a channel, and fails the test if none comes within
// Patience.
func Receive[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		tb.Fatalf("not within %v: %s", Patience, what)
		panic("unreachable")
	}
}
