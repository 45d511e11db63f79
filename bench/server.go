package bench

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// StartRedis starts a redis-server for a measurement, without persistence, on a
// free loopback port, and returns a client and what stops it.
func StartRedis(ctx context.Context) (rdb *redis.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "curfew-bench")
	if err != nil {
		return nil, nil, err
	}
	server, err := redisproc.Start(dir)
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
