package bench

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Memory measures what a pending task takes in Redis: used_memory after n tasks
// with 100 random bytes and a deadline each, less before, by n.
func Memory(ctx context.Context, rdb redis.UniversalClient, n int) (Report, error) {
	r := Report{Bench: "memory"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	before, err := usedMemory(ctx, rdb)
	if err != nil {
		return r, err
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, noop))); err != nil {
		return r, err
	}
	after, err := usedMemory(ctx, rdb)
	r.add("memory a task", float64(after-before)/float64(n), "B")
	return r, err
}

func usedMemory(ctx context.Context, rdb redis.UniversalClient) (int64, error) {
	info, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, nil
}
