package redistest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// shared is the server of this test binary. The first call of Shared starts it.
var shared struct {
	inMain bool
	mu     sync.Mutex // guards the fields below
	dir    string
	server *Server // nil until it has started
	err    error   // why it did not start
}

// AtOnce lets up to n parallel tests of this binary run at the same time, unless -parallel says
// otherwise. The default of go test is the number of processors, which are idle while tests wait.
// TestMain calls AtOnce before Main.
func AtOnce(n int) {
	// Run parses the command line later, and a -parallel there replaces this value.
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Main runs the tests of a package and then stops the shared server. A package that uses Shared
// must call it: func TestMain(m *testing.M) { redistest.Main(m) }.
func Main(m *testing.M) {
	shared.inMain = true
	engine.SetTryFor(time.Minute) // the servers of tests lose no replies, so a repeat of a call only changes what the test counts
	if f := flag.Lookup("rapid.seed"); f != nil {
		f.Value.Set(strconv.FormatUint(size.Seed(), 10)) // a -rapid.seed of the command line replaces it
	}
	m.Run() // the testing package exits with its result when TestMain returns
	if shared.server != nil {
		shared.server.Kill()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// Shared returns the one real server that all tests of the binary share. The first call starts it.
// A test must use its own Namespace there, and must not change the server's settings.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if !shared.inMain {
		tb.Fatal("redistest.Shared needs func TestMain(m *testing.M) { redistest.Main(m) } in this package, to stop the server")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startShared()
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

func startShared() (s *Server, err error) {
	if shared.dir, err = os.MkdirTemp("", "curfew-redis"); err != nil {
		return nil, err
	}
	server, err := redisproc.Start(shared.dir)
	if err != nil {
		return nil, err
	}
	return &Server{server}, nil
}

var namespaces atomic.Int64

// Namespace returns a short name that no other caller in this binary gets. It begins with the name
// of the test, so that a key shows its origin. When the test ends, the keys that begin with the name
// and a colon are removed from the shared server, because they would slow down later SCANs.
func Namespace(tb testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, strings.TrimPrefix(tb.Name(), "Test"))
	name = fmt.Sprintf("t%.20s.%d", name, namespaces.Add(1))
	tb.Cleanup(func() {
		shared.mu.Lock()
		server := shared.server
		shared.mu.Unlock()
		if server == nil {
			return // the test uses another server, which ends with it
		}
		if err := remove(context.Background(), server.Addr, name+":"); err != nil {
			tb.Errorf("remove the keys of namespace %s: %v", name, err)
		}
	})
	return name
}

// remove deletes all keys that begin with prefix.
func remove(ctx context.Context, addr, prefix string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	keys, err := scan(ctx, rdb, prefix)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(keys, 1000) {
		if err := rdb.Unlink(ctx, chunk...).Err(); err != nil {
			return err
		}
	}
	return nil
}
