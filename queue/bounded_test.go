package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A call reads about 500 queues, and each queue is counted once.
func TestStatsOfMoreQueuesThanACallReads(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		list := make([]queue.Task, 2600)
		for i := range list {
			list[i] = queue.Task{Kind: "k", Queue: fmt.Sprint("line", i/2), Timeout: time.Hour}
		}
		if _, err := q.EnqueueAll(ctx, list); err != nil {
			t.Fatal(err)
		}
		stats, err := q.Stats(ctx)
		if err != nil || len(stats.Queues) != 1300 || stats.Deadlines != 2600 {
			t.Fatalf("%d queues, %d deadlines, %v", len(stats.Queues), stats.Deadlines, err)
		}
		for i, s := range stats.Queues {
			if s.Ready != 2 || s.Enqueued != 2 || i > 0 && s.Queue <= stats.Queues[i-1].Queue {
				t.Errorf("queue %d is %+v", i, s)
			}
		}
	})
}

// To be short, a call reads only about 500 queues, and a sweep ends only 250 tasks.
func TestACallIsShort(t *testing.T) {
	ctx := context.Background()
	rdb := redistest.Shared(t).Client(t)
	library := testclock.Library(t, rdb)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Library: library})
	list := make([]queue.Task, 1300)
	for i := range list {
		list[i] = queue.Task{Kind: "k", Queue: fmt.Sprint("line", i), Timeout: time.Millisecond}
	}
	if _, err := q.EnqueueAll(ctx, list); err != nil {
		t.Fatal(err)
	}
	reply, err := library.Run(ctx, rdb, "read_queues", q.Root(0))
	if rows, ok := reply.([]any); !ok || len(rows) < 500 || len(rows) > 800 {
		t.Errorf("%d elements, %v", len(rows), err)
	}
	testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(time.Second))
	for ended, did := 0, 0; ended < len(list); ended += did {
		s, err := reaper.Sweep(ctx, q, 0, "r", 1000, time.Second)
		if err != nil || s.TimedOut != min(250, len(list)-ended) || s.Wait > 0 != (ended+s.TimedOut == len(list)) {
			t.Fatalf("after %d: %+v, %v", ended, s, err)
		}
		did = s.TimedOut
	}
}
