package bench

import (
	"context"
	"os"
	"strings"

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

// infoFields returns the lines of an INFO reply by name.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// RedisVersion returns the version of a Redis server.
func RedisVersion(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	return infoFields(info)["redis_version"], err
}
