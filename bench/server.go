package bench

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// AOF are settings for StartRedis: an append-only file that is synced once a second.
var AOF = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// StartRedis starts a redis-server for a measurement, on a free loopback port. It returns a
// client and a function that stops the server and removes its files. The server has no
// persistence unless settings turn it on, as AOF does.
func StartRedis(ctx context.Context, settings ...string) (rdb *redis.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "curfew-bench")
	if err != nil {
		return nil, nil, err
	}
	server, err := redisproc.Start(dir, settings...)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	rdb = redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true})
	return rdb, func() {
		rdb.Close()
		server.Kill()
		os.RemoveAll(dir)
	}, nil
}
