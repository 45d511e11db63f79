package bench

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// AOF are the settings of an append-only file that is written to disk once a second.
var AOF = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// StartRedis starts a redis-server for a measurement, on a free loopback port, and
// returns a client and what stops it. It has no persistence unless settings say so, as
// AOF does.
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
