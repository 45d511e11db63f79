package bench

import (
	"testing"
	"time"
)

// A month in a million parts is more ns than a duration can have, if the number of a part is multiplied first.
func TestEventsAreSpreadOverALongSpan(t *testing.T) {
	const n, span = 1_000_000, 30 * 24 * time.Hour
	for i, want := range map[int]time.Duration{0: 0, 1: span / n, n / 2: span / 2, n: span} {
		if got := startOf(i, n, span); got != want {
			t.Errorf("event %d begins after %v, want %v", i, got, want)
		}
	}
}
