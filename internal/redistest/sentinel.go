package redistest

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// Sentinels are a master with two replicas, and three sentinels that watch it.
type Sentinels struct {
	*redisproc.Sentinels
}

// StartSentinels starts them, waits until they know each other, and stops them when
// the test ends.
func StartSentinels(tb testing.TB) *Sentinels {
	tb.Helper()
	s, err := redisproc.StartSentinels(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return &Sentinels{s}
}

// URL is what queue.Connect takes.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + redisproc.MasterName
}

// Master is the server that the sentinels say is the master.
func (s *Sentinels) Master(tb testing.TB) *Server {
	tb.Helper()
	master, err := s.Sentinels.Master()
	if err != nil {
		tb.Fatal(err)
	}
	return &Server{master}
}
