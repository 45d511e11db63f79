package races

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(4) // they wait more than they compute
	harness.Main(m, play)
}

// rounds returns n, or 10 n with CURFEW_LONG=1, or n/5 with -short.
func rounds(n int) int { return harness.Times(max(n/5, 1), n, 10*n) }

// again runs a test once, or 10 times with CURFEW_LONG=1, each time in a new namespace: an event
// stream keeps only about 100,000 events.
func again(t *testing.T, test func(t *testing.T)) {
	for range harness.Times(1, 1, 10) {
		t.Run("in a new namespace", test)
	}
}
