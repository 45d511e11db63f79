package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// slowed is a client whose calls take longer.
type slowed struct {
	redis.Hook
	by time.Duration
}

func (s slowed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		<-time.After(s.by)
		return next(ctx, cmd)
	}
}
func (s slowed) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s slowed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A limit grows with the time that the server takes, within bounds.
func TestPaceFollowsTheServer(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	if pace := redistest.Pace(t, rdb); pace < 1 || pace > 4 {
		t.Errorf("Pace = %v, want 1 to 4", pace)
	}
	rdb.AddHook(slowed{by: 13 * time.Millisecond})
	if limit := redistest.Paced(t, rdb, time.Second); limit < 3*time.Second || limit > 4*time.Second {
		t.Errorf("with a server that takes 13 ms longer, Paced = %v, want 3s to 4s", limit)
	}
}
