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

// Without a back-off of its own or of its kind, a task with retries has the usual one. None is a back-off too.
func TestRetriesHaveABackoff(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for kind, d := range map[string]queue.Defaults{"k": {MaxRetries: 3}, "none": {MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}}} {
			if err := q.DefineKind(t.Context(), kind, d); err != nil {
				t.Fatal(err)
			}
		}
		usual, none := [4]string{"exponential", "1000", "600000", "20"}, [4]string{}
		for _, row := range []struct {
			claim string
			task  queue.Task
			want  [4]string
		}{
			{"retries of the kind", queue.Task{Kind: "k"}, usual},
			{"retries of its own", queue.Task{Kind: "x", MaxRetries: 1}, usual},
			{"a short timeout", queue.Task{Kind: "x", MaxRetries: 5, Timeout: 500 * time.Millisecond}, [4]string{"exponential", "50", "50", "20"}},
			{"a long timeout", queue.Task{Kind: "x", MaxRetries: 5, Timeout: time.Minute}, [4]string{"exponential", "1000", "6000", "20"}},
			{"a Delay of None", queue.Task{Kind: "k", Backoff: queue.Backoff{Delay: queue.None}}, none},
			{"a kind with a Delay of None", queue.Task{Kind: "none"}, [4]string{"", "0"}},
			{"no retries", queue.Task{Kind: "k", MaxRetries: queue.NoRetries}, none},
			{"no retries, nor of its kind", queue.Task{Kind: "x"}, none},
			{"a promise", queue.Task{Kind: "k", Promise: true}, none},
		} {
			first := queuetest.Enqueue(t, q, row.task).ID
			stored := func(id string) [4]string {
				r, err := q.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				return [4]string{r.Fields["backoff"], r.Fields["backoff_ms"], r.Fields["backoff_max_ms"], r.Fields["jitter"]}
			}
			if got := stored(first); got != row.want {
				t.Errorf("%s: the back-off is %q, want %q", row.claim, got, row.want)
			}
			if _, err := q.Cancel(t.Context(), first, "test"); err != nil {
				t.Fatal(err)
			}
			again, err := q.Retry(t.Context(), first, nil)
			if err != nil {
				t.Fatalf("%s: a retry by hand: %v", row.claim, err)
			}
			if got := stored(again.ID); got[1] != row.want[1] && got[1]+row.want[1] != "0" {
				t.Errorf("%s: run again by hand, the back-off is %q, want %q", row.claim, got, row.want)
			}
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
