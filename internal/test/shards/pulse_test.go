package shards

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
)

// pulse pings servers, each from its own goroutine, until stop is called. stop returns the longest
// time without a reply: how much of a measured time the machine caused.
func pulse(t *testing.T, servers []*redisproc.Server) (stop func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	silent := make([]time.Duration, len(servers))
	for i, server := range servers {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
		t.Cleanup(func() { rdb.Close() })
		ticker := time.NewTicker(5 * time.Millisecond)
		group.Go(func() {
			defer ticker.Stop()
			for last := time.Now(); ctx.Err() == nil; {
				if rdb.Ping(context.Background()).Err() == nil {
					now := time.Now()
					silent[i], last = max(silent[i], now.Sub(last)), now
				}
				select {
				case <-ticker.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return func() (longest time.Duration) {
		cancel()
		group.Wait()
		for _, d := range silent {
			longest = max(longest, d)
		}
		return longest
	}
}

// except returns the servers without one.
func except(servers []*redisproc.Server, one *redisproc.Server) (others []*redisproc.Server) {
	for _, s := range servers {
		if s != one {
			others = append(others, s)
		}
	}
	return others
}
