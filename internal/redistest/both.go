package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/embedded"
)

// Embedded is the embedded server, closed when the test ends. Its SetTime moves
// the clock of scripts and of expiring keys.
func Embedded(tb testing.TB) *embedded.Server {
	tb.Helper()
	s, err := embedded.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Both runs a test as two subtests, each on an empty server of its own: a real Redis
// and the embedded one. What holds on one only is no property of Curfew.
func Both(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, Start(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) { test(t, Embedded(t).Client()) })
}
