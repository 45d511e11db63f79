package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// Server is a redis-server process, without persistence unless its arguments say so.
type Server struct {
	*redisproc.Server
}

// Start starts a redis-server on a free port, waits until it answers, and stops it
// when the test ends. args are settings as on its command line, and come last, so
// they win: Start(t, "--appendonly", "yes").
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := redisproc.Start(tb.TempDir(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return &Server{s}
}

// Client is a new client of this server, closed when the test ends.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	return closed(tb, redis.NewClient(&redis.Options{Addr: s.Addr}))
}

func closed(tb testing.TB, rdb *redis.Client) *redis.Client {
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// Restart starts the server again with the same port, folder and arguments, after
// a Kill or instead of one. What comes back is what its persistence kept.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.Server.Restart(); err != nil {
		tb.Fatal(err)
	}
}
