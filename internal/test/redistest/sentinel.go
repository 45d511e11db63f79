package redistest

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// Sentinels is a master with two replicas, watched by three sentinels.
type Sentinels struct {
	*redisproc.Sentinels
}

// StartSentinels starts the servers and sentinels, waits until the sentinels know all of them, and
// stops them when the test ends.
func StartSentinels(tb testing.TB) *Sentinels {
	tb.Helper()
	s, err := redisproc.StartSentinels(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return &Sentinels{s}
}

// URL returns the URL of the sentinels for queue.Connect.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + redisproc.MasterName
}

// Master returns the server that the first sentinel names as the master.
func (s *Sentinels) Master(tb testing.TB) *Server {
	tb.Helper()
	master, err := s.Sentinels.Master()
	if err != nil {
		tb.Fatal(err)
	}
	return &Server{master}
}
