package lua

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// kinds are the servers on which scripts run. Their error texts differ, and only real servers
// accept a shebang.
var kinds = []struct {
	name  string
	o     Options
	start func(testing.TB) redis.UniversalClient
}{
	{"redis", Options{Functions: true}, startRedis},
	{"redis without functions", Options{}, startRedis},
	{"miniredis", Options{}, startMiniredis},
}

func onEachKind(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient, o Options)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, kind.start(t), kind.o)
		})
	}
}

func startMiniredis(tb testing.TB) redis.UniversalClient {
	return client(tb, &redis.Options{Addr: miniredis.RunT(tb).Addr()})
}

func startRedis(tb testing.TB) redis.UniversalClient {
	return client(tb, &redis.Options{Network: "unix", Addr: startServer(tb)})
}

func client(tb testing.TB, o *redis.Options) *redis.Client {
	rdb := redis.NewClient(o)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// startServer starts a redis-server with additional arguments, and returns its socket.
func startServer(tb testing.TB, args ...string) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "redis") // tb.TempDir's path may be too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	server := exec.Command("redis-server", append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)...)
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { server.Process.Kill(); server.Wait() })

	rdb := client(tb, &redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	await.Until(tb, "redis-server answers", func() bool { return rdb.Ping(context.Background()).Err() == nil })
	return socket
}
