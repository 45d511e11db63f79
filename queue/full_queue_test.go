package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
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
