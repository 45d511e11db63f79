package redistest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// shared is the server of this test binary, if a test asked for it.
var shared struct {
	once   sync.Once
	inMain bool
	dir    string
	server *Server
	err    error
}

// Main runs a package's tests and stops the server that they shared. A package
// that uses Shared calls it: func TestMain(m *testing.M) { redistest.Main(m) }.
func Main(m *testing.M) {
	shared.inMain = true
	m.Run() // the testing package exits with what it found
	if shared.server != nil && shared.err == nil {
		shared.server.Kill()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// Shared is one real server for all tests of the binary, started when the first asks.
// Each test keeps to a Namespace of its own, and leaves the server's settings alone.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if !shared.inMain {
		tb.Fatal("redistest.Shared needs func TestMain(m *testing.M) { redistest.Main(m) } in this package, to stop the server")
	}
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "curfew-redis"); shared.err == nil {
			var server *redisproc.Server
			server, shared.err = redisproc.Start(shared.dir)
			shared.server = &Server{server}
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

var namespaces atomic.Int64

// Namespace is a new short name that no other caller in this binary gets. It begins
// with the test's, so that a key says where it came from.
func Namespace(tb testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, strings.TrimPrefix(tb.Name(), "Test"))
	return fmt.Sprintf("t%.20s.%d", name, namespaces.Add(1))
}
