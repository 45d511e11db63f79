package races

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(4) // they wait more than they compute
	stages.Main(m, play)
}

// rounds is a count where there is time for more (CURFEW_LONG), or only for less
// (-short, as under the race detector).
func rounds(n int) int { return stages.Times(max(n/5, 1), n, 10*n) }

// fewer is a count where there may be time only for less.
func fewer(n int) int {
	if testing.Short() {
		return max(n/5, 1)
	}
	return n
}

// again runs a test whose namespace must not grow with the time there is: the stream
// of events keeps no more than about the newest 100,000.
func again(t *testing.T, test func(t *testing.T)) {
	for range stages.Times(1, 1, 10) {
		t.Run("from the start", test)
	}
}
