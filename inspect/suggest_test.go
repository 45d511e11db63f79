package inspect_test

import (
	"math"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
)

// A factor that a program computed can be any number.
func TestASuggestedTimeoutIsATime(t *testing.T) {
	const most = 100 * 365 * 24 * time.Hour
	for _, row := range []struct {
		factor float64
		p995   time.Duration
		want   time.Duration
	}{
		{1.5, time.Second, 1500 * time.Millisecond},
		{math.NaN(), time.Second, 0},
		{math.Inf(1), time.Second, most},
		{math.Inf(-1), time.Second, 0},
		{math.Inf(1), 0, 0},
		{1e300, time.Second, most},
		{-1, time.Second, 0},
		{0, time.Second, 0},
		{math.SmallestNonzeroFloat64, time.Second, 0},
	} {
		if got := (inspect.Suggestion{P995: row.p995}).Timeout(row.factor); got != row.want {
			t.Errorf("Timeout(%v) of %v = %v, want %v", row.factor, row.p995, got, row.want)
		}
	}
}
