package races

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it tells each connection that these tests cut
	if role := os.Getenv(roleVariable); role != "" {
		playChild(role)
		return
	}
	redistest.AtOnce(4) // they wait more than they compute
	redistest.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// rounds is a count where there is time for more (CURFEW_LONG), or only for less
// (-short, as under the race detector).
func rounds(n int) int {
	if long() {
		return 10 * n
	}
	return fewer(n)
}

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
	times := 1
	if long() {
		times = 10
	}
	for range times {
		t.Run("from the start", test)
	}
}

func long() bool { return os.Getenv("CURFEW_LONG") != "" }
