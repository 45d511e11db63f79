package queue_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// everywhere runs a test on a real Redis and on the embedded server, with 1 and with
// 4 partitions, each time in a new namespace.
func everywhere(t *testing.T, test func(t *testing.T, q *queue.Queue)) {
	t.Helper()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Run("1 partition", func(t *testing.T) { test(t, open(t, rdb, queue.Config{Namespace: "one"})) })
		t.Run("4 partitions", func(t *testing.T) { test(t, open(t, rdb, queue.Config{Namespace: "four", Partitions: 4})) })
	})
}

// open opens a namespace that logs nowhere.
func open(tb testing.TB, rdb redis.UniversalClient, config queue.Config) *queue.Queue {
	tb.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	q, err := queue.Open(context.Background(), rdb, config)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// enqueue hands over a task that must be accepted.
func enqueue(tb testing.TB, q *queue.Queue, task queue.Task) queue.Receipt {
	tb.Helper()
	if task.Kind == "" {
		task.Kind = "k"
	}
	r, err := q.Enqueue(context.Background(), task)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// taker fetches as one worker does, with a seq that grows.
type taker struct {
	q      *queue.Queue
	worker string
	seq    int64
}

// take claims a task that must be the next one of a queue, in the partition of its id.
func (w *taker) take(tb testing.TB, id, line string) queue.Claim {
	tb.Helper()
	w.seq++
	trip, err := w.q.Fetch(context.Background(), partition(tb, id), w.worker,
		queue.Ask{N: 1, Seq: w.seq, Lease: time.Minute, Quotas: []queue.Quota{{Queue: line, N: 1}}})
	if err != nil {
		tb.Fatal(err)
	}
	if len(trip.Claims) != 1 || trip.Claims[0].ID != id {
		tb.Fatalf("fetch from %s = %+v, want %s", line, trip.Claims, id)
	}
	return trip.Claims[0]
}

// settle reports one outcome, which must be accepted.
func (w *taker) settle(tb testing.TB, o queue.Outcome) {
	tb.Helper()
	if v := w.report(tb, queue.NewCall(), o); !v.Accepted() {
		tb.Fatalf("%s of %s = %+v, want OK", o.Verb, o.ID, v)
	}
}

// report reports one outcome and returns what Redis made of it.
func (w *taker) report(tb testing.TB, call string, o queue.Outcome) queue.Verdict {
	tb.Helper()
	trip, err := w.q.Settle(context.Background(), partition(tb, o.ID), w.worker, call, []queue.Outcome{o}, queue.Ask{})
	if err != nil {
		tb.Fatal(err)
	}
	return trip.Verdicts[0]
}

// partition is the partition of an id; of one that is no id, the first.
func partition(tb testing.TB, id string) int {
	tb.Helper()
	p, err := queue.PartitionOf(id)
	if err != nil {
		return 0
	}
	return p
}

// sound holds a namespace against the audit.
func sound(tb testing.TB, q *queue.Queue) {
	tb.Helper()
	findings, err := q.Audit(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range findings {
		tb.Errorf("audit: %s", f)
	}
}
