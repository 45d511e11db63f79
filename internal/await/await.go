// Package await has tests wait for what must happen. Receive waits for a signal. Until polls
// a condition, where nothing sends a signal.
package await

import (
	"testing"
	"time"
)

// Patience is how long a test waits. What takes longer has failed: no test measures with
// it how fast something is.
const Patience = 30 * time.Second

// pause is short, so that waiting adds little to what a test takes.
const pause = 2 * time.Millisecond

// Until returns when a condition holds, and fails the test with what it waited for if
// it never does. It is for what sends no signal: a state of Redis, a file, a process.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for over := time.Now().Add(Patience); !holds(); {
		if time.Now().After(over) {
			tb.Fatal("never: " + what)
		}
		time.Sleep(pause)
	}
}

// Receive returns the next value of a channel, and fails the test with what it waited
// for if none comes.
func Receive[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		tb.Fatal("never: " + what)
		panic("unreachable")
	}
}
