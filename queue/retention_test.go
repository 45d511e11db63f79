package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// kept is how many ended tasks the queue has before the test.
const kept = 100_000

// in sends a command for each number from 1 to n, in few round trips.
func in(t *testing.T, rdb *redis.Client, n int, command func(redis.Pipeliner, int)) {
	t.Helper()
	for from := 1; from <= n; from += 10_000 {
		if _, err := rdb.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for i := from; i < min(from+10_000, n+1); i++ {
				command(p, i)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// The records of failed tasks are kept for their retention, however many there are.
func TestAQueueKeepsItsFailuresAsLongAsTheirRetention(t *testing.T) {
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	q := queuetest.Open(t, rdb, queue.Config{})
	dead := q.Root(0) + ":dead:default"
	in(t, rdb, kept, func(p redis.Pipeliner, i int) {
		p.ZAdd(ctx, dead, redis.Z{Score: 1, Member: fmt.Sprint("0-old", i)})
	})
	id := queuetest.Enqueue(t, q, queue.Task{Retention: 30 * 24 * time.Hour}).ID
	if _, err := q.Cancel(ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	if n := rdb.ZCard(ctx, dead).Val(); n != kept+1 {
		t.Errorf("%d failures are kept, want %d", n, kept+1)
	}
	retained := rdb.ZRangeWithScores(ctx, q.Root(0)+":retained", 0, -1).Val()
	if len(retained) != 1 || retained[0].Member != id || retained[0].Score < float64(time.Now().Add(29*24*time.Hour).UnixMilli()) {
		t.Errorf("the records to remove are %v, want only %s in 30 days", retained, id)
	}
}
