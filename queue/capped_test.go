package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// kept is how many ended tasks a queue lists, and about how many events there are.
const kept = 100_000

// in hands a command to Redis for each of the numbers from 1 on, in few trips.
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

func TestAQueueKeepsNoMoreThanItsNewestFailures(t *testing.T) {
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	q := open(t, rdb, queue.Config{})
	dead, retained := q.Root(0)+":dead:default", q.Root(0)+":retained"
	now := time.Now().UnixMilli()
	in(t, rdb, kept, func(p redis.Pipeliner, i int) {
		ended := redis.Z{Score: float64(now), Member: fmt.Sprint("0-old", i)}
		if i == 1 {
			ended.Score = 1 // long ago
		}
		p.ZAdd(ctx, dead, ended)
	})
	for range 2 {
		id := enqueue(t, q, queue.Task{}).ID
		if _, err := q.Cancel(ctx, id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := rdb.ZCard(ctx, dead).Val(); n != kept {
		t.Errorf("%d failures are kept, want %d", n, kept)
	}
	// Members of one score are in the order of their names.
	want := map[string]float64{"0-old1": 0, "0-old10": float64(now + 60_000)}
	for id, earliest := range want {
		goes, err := rdb.ZScore(ctx, retained, id).Result()
		if latest := max(earliest, float64(time.Now().UnixMilli())); err != nil || goes < earliest || goes > latest {
			t.Errorf("%s goes at %.0f, %v, want between %.0f and %.0f: 60 s after its end or at once", id, goes, err, earliest, latest)
		}
	}
	if _, err := rdb.ZScore(ctx, retained, "0-old100").Result(); err != redis.Nil {
		t.Errorf("0-old100 is to go too (%v), and two were to make room for two", err)
	}
}

func TestTheStreamOfEventsIsCapped(t *testing.T) {
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	q := open(t, rdb, queue.Config{})
	old := func(p redis.Pipeliner, _ int) {
		p.XAdd(ctx, &redis.XAddArgs{Stream: q.EventsKey(0), Values: []string{"kind", "old"}})
	}
	owner := enqueue(t, q, queue.Task{}).ID
	child := enqueue(t, q, queue.Task{ID: owner + ".child"}).ID
	in(t, rdb, kept, old)
	for _, id := range []string{child, owner} { // a child's event is written in another way
		in(t, rdb, 1000, old)
		if _, err := q.Cancel(ctx, id, ""); err != nil {
			t.Fatal(err)
		}
		// Redis trims whole nodes, of 100 entries.
		if n := rdb.XLen(ctx, q.EventsKey(0)).Val(); n < kept || n > kept+200 {
			t.Errorf("after the end of %s there are %d events, want about %d", id, n, kept)
		}
	}
}
