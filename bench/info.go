package bench

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

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

// serverVersion returns the version of the Redis server.
func serverVersion(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	return infoFields(info)["redis_version"], err
}
