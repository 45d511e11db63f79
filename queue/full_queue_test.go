package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The partitions share a length, rounded up, and each task of a list is refused by itself.
func TestAFullQueueRefusesTasks(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx, partitions := context.Background(), q.Partitions()
		most := (partitions + 1 + partitions - 1) / partitions * partitions
		if _, err := q.LimitLength(ctx, "a", partitions+1); err != nil {
			t.Fatal(err)
		}
		before, err := q.Stats(ctx)
		if err != nil || before.Queues[0].MaxLength != int64(most) {
			t.Fatalf("%+v, %v, want a length of %d", before.Queues, err, most)
		}
		stored := 0
		for range 2 * most {
			_, err := q.Enqueue(ctx, queue.Task{Kind: "k", Queue: "a"})
			if err == nil {
				stored++
			} else if !errors.Is(err, refusal.ErrQueueFull) || errors.Is(err, refusal.ErrFull) || !strings.Contains(err.Error(), "a has reached its maximum length of 2 in partition ") {
				t.Errorf("%v", err)
			}
		}
		if stored != most {
			t.Errorf("%d tasks were stored, want %d", stored, most)
		}
		receipts, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "k", Queue: "a"}, {Kind: "k", Queue: "b"}, {Kind: "k", Queue: "a", Delay: time.Hour}})
		if err != nil || !errors.Is(receipts[0].Err, refusal.ErrQueueFull) || receipts[0].ID != "" || receipts[1].Err != nil || receipts[2].Err != nil {
			t.Errorf("%+v, %v", receipts, err)
		}
		if stats, err := q.Stats(ctx); err != nil || stats.Queues[0].Refused != int64(most+1) || stats.Queues[0].Full != partitions {
			t.Errorf("%+v, %v, want %d refused tasks, and all partitions full", stats.Queues[0], err, most+1)
		}
		if n, err := q.Drain(ctx, "a", ""); err != nil || n != int64(most) {
			t.Errorf("%d tasks were in line, %v, want %d", n, err, most)
		}
		receipts, err = q.EnqueueAll(ctx, slices.Repeat([]queue.Task{{Kind: "k", Queue: "a"}}, 5)) // in one partition
		for i, r := range receipts {
			if full := errors.Is(r.Err, refusal.ErrQueueFull); full != (i >= 2) || err != nil || !full && r.Err != nil {
				t.Errorf("task %d of a list: %+v, %v", i, r, err)
			}
		}
		queuetest.Sound(t, q)
	})
}

// A call whose first try got no reply, and whose repeat finds the queue full, is not refused for certain: the first try can arrive when
// there is room again, and then it stores the task.
func TestAFullQueueAfterALostTryIsUnknown(t *testing.T) {
	ctx, rdb := t.Context(), redistest.Start(t).Client(t)
	proxy := faultproxy.Start(t, rdb.Options().Addr)
	q := queuetest.Open(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}), queue.Config{})
	if _, err := q.LimitLength(ctx, "a", 1); err != nil {
		t.Fatal(err)
	}
	first := queuetest.Enqueue(t, q, queue.Task{Queue: "a"}).ID
	var late []any
	enqueues := faultproxy.Script(q.Engine().Library().Handle("enqueue"))
	lost := proxy.CutRequest(func(args [][]byte) bool {
		if !enqueues(args) {
			return false
		}
		late = nil
		for _, arg := range args {
			late = append(late, string(arg))
		}
		return true
	}, 1)
	r, err := q.Enqueue(ctx, queue.Task{Kind: "k", Queue: "a"})
	lost.Await(t)
	if !errors.Is(err, refusal.ErrUnknown) || errors.Is(err, refusal.ErrQueueFull) || r.ID == "" {
		t.Fatalf("Enqueue = %+v, %v, want ErrUnknown and the id", r, err)
	}
	if _, err := q.Cancel(ctx, first, ""); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Do(ctx, late...).Err(); err != nil {
		t.Fatal(err)
	}
	if stored, err := q.Get(ctx, r.ID); err != nil || stored.Status != queue.Pending {
		t.Errorf("after the late try the task is %+v, %v", stored, err)
	}
	lost = proxy.CutRequest(enqueues, 1)
	receipts, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "k", Queue: "a"}, {Kind: "k", Queue: "b"}})
	lost.Await(t)
	if err != nil || !errors.Is(receipts[0].Err, refusal.ErrUnknown) || receipts[0].ID == "" || receipts[1].Err != nil {
		t.Errorf("EnqueueAll = %+v, %v", receipts, err)
	}
}
