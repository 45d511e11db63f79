package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// Server is a redis-server process. It has no persistence unless its arguments turn it on.
type Server struct {
	*redisproc.Server
}

// Start starts a redis-server on a free port, waits until it answers, and stops it when the test
// ends. args are settings as on its command line, and override the others:
// Start(t, "--appendonly", "yes").
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := redisproc.Start(tb.TempDir(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return &Server{s}
}

// Client returns a new client of this server, which is closed when the test ends.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	return closed(tb, redis.NewClient(&redis.Options{Addr: s.Addr}))
}

func closed(tb testing.TB, rdb *redis.Client) *redis.Client {
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// Restart kills the server if it runs, and starts it again with the same port, folder and
// arguments. Its data are those that its persistence kept.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.Server.Restart(); err != nil {
		tb.Fatal(err)
	}
}
