package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A task with a back-off uses no part of the back-off of its kind.
func TestABackoffOfATaskReplacesThatOfItsKind(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		err := q.DefineKind(ctx, "k", queue.Defaults{MaxRetries: 3,
			Backoff: queue.Backoff{Delay: time.Hour, Exponential: true, Max: 2 * time.Hour, Jitter: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		backoff := func(task queue.Task) [4]string {
			r, err := q.Get(ctx, queuetest.Enqueue(t, q, task).ID)
			if err != nil {
				t.Fatal(err)
			}
			return [4]string{r.Fields["backoff"], r.Fields["backoff_ms"], r.Fields["backoff_max_ms"], r.Fields["jitter"]}
		}
		if got, want := backoff(queue.Task{}), [4]string{"exponential", "3600000", "7200000", "50"}; got != want {
			t.Errorf("a task without a back-off has %q, want that of its kind, %q", got, want)
		}
		if got, want := backoff(queue.Task{Backoff: queue.Backoff{Delay: time.Second}}), [4]string{"constant", "1000", "", "0"}; got != want {
			t.Errorf("a task with its own back-off has %q, want %q", got, want)
		}
	})
}

// Each partition gives its share of the burst at once, and a share is at least 1. So a burst below
// the number of partitions would be exceeded.
func TestABurstThatCannotBeSharedIsRefused(t *testing.T) {
	ctx := context.Background()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Partitions: 4})
	if _, err := q.LimitRate(ctx, "q", queue.Rate{N: 1, Per: time.Hour}); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("a burst of 1 over 4 partitions: %v, want it refused", err)
	}
	if _, err := q.LimitRate(ctx, "q", queue.Rate{N: 1, Per: time.Hour, Burst: 4}); err != nil {
		t.Errorf("a burst of 4 over 4 partitions: %v, want it allowed", err)
	}
}

// A worker defines its kinds when it starts, and it must be able to start on a full Redis to drain it.
func TestAKindIsDefinedOnAFullRedis(t *testing.T) {
	ctx := context.Background()
	rdb := redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	if err := rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := q.DefineKind(ctx, "k", queue.Defaults{Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "k"}); !errors.Is(err, refusal.ErrFull) {
		t.Errorf("Enqueue = %v, so Redis was not full", err)
	}
}
