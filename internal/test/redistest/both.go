package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// Embedded starts an embedded server and closes it when the test ends. SetTime of the server
// moves the clock of scripts and of expiring keys.
func Embedded(tb testing.TB) *embedded.Server {
	tb.Helper()
	s, err := embedded.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Both runs a test as two subtests, "redis" and "embedded", each on its own empty server. Curfew
// must behave the same on both. The embedded server interprets Lua some ten times as slowly, so a usual run plays
// one in four tests there, and a long run all.
func Both(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, Start(t).Client(t)) })
	if size.Drawn(t.Name(), 4) {
		t.Run("embedded", func(t *testing.T) { test(t, Embedded(t).Client()) })
	}
}
