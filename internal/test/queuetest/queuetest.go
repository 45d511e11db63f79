package queuetest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
)

// Everywhere runs a test as redistest.Both does, with 4 partitions on the real Redis and 1 on the embedded server, each in
// a new namespace. One test in four, and each test in a long run, gets the other number of partitions too.
func Everywhere(t *testing.T, test func(t *testing.T, q *queue.Queue)) {
	t.Helper()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		real := strings.HasSuffix(t.Name(), "/redis")
		if !real || size.Drawn("1 partition of "+t.Name(), 4) {
			t.Run("1 partition", func(t *testing.T) { test(t, Open(t, rdb, queue.Config{Namespace: "one"})) })
		}
		if real || size.Drawn("4 partitions of "+t.Name(), 4) {
			t.Run("4 partitions", func(t *testing.T) { test(t, Open(t, rdb, queue.Config{Namespace: "four", Partitions: 4})) })
		}
	})
}

// Open opens a namespace. Without a logger in config it discards the log.
func Open(tb testing.TB, rdb redis.UniversalClient, config queue.Config) *queue.Queue {
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

// Enqueue enqueues a task, which must be accepted. Without a kind its kind is k.
func Enqueue(tb testing.TB, q *queue.Queue, task queue.Task) queue.Receipt {
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

// Taker fetches as a worker does, with increasing seq.
type Taker struct {
	Q      *queue.Queue
	Worker string
	Seq    int64
}

// Take claims a task. It must be the next one of its queue in its partition.
func (w *Taker) Take(tb testing.TB, id, line string) queue.Claim {
	tb.Helper()
	w.Seq++
	trip, err := claim.Of(w.Q).Fetch(context.Background(), Partition(tb, id), w.Worker,
		claim.Ask{N: 1, Seq: w.Seq, Lease: time.Minute, Quotas: []claim.Quota{{Queue: line, N: 1}}})
	if err != nil {
		tb.Fatal(err)
	}
	if len(trip.Claims) != 1 || trip.Claims[0].ID != id {
		tb.Fatalf("fetch from %s = %+v, want %s", line, trip.Claims, id)
	}
	return trip.Claims[0]
}

// Settle reports one outcome, which must be accepted.
func (w *Taker) Settle(tb testing.TB, o queue.Outcome) {
	tb.Helper()
	if v := w.Report(tb, queue.NewCall(), o); !v.Accepted() {
		tb.Fatalf("%s of %s = %+v, want OK", o.Verb, o.ID, v)
	}
}

// Report reports one outcome and returns the verdict.
func (w *Taker) Report(tb testing.TB, call string, o queue.Outcome) queue.Verdict {
	tb.Helper()
	trip, err := claim.Of(w.Q).Settle(context.Background(), Partition(tb, o.ID), w.Worker, call, []queue.Outcome{o}, claim.Ask{})
	if err != nil {
		tb.Fatal(err)
	}
	return trip.Verdicts[0]
}

// Partition returns the partition of an id, or 0 if it is not an id.
func Partition(tb testing.TB, id string) int {
	tb.Helper()
	p, err := queue.PartitionOf(id)
	if err != nil {
		return 0
	}
	return p
}

// Sound runs inspect.Audit, and fails the test for each finding.
func Sound(tb testing.TB, q *queue.Queue) {
	tb.Helper()
	findings, err := inspect.Audit(context.Background(), q)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range findings {
		tb.Errorf("audit: %s", f)
	}
}

// Busy enqueues, starts and completes tasks, to have events in every partition.
func Busy(tb testing.TB, q *queue.Queue, tasks int) {
	tb.Helper()
	ctx, worker := context.Background(), queue.NewCall()
	for i := range tasks {
		Enqueue(tb, q, queue.Task{Kind: fmt.Sprintf("k%d", i)})
	}
	for p := range q.Partitions() {
		trip, err := claim.Of(q).Fetch(ctx, p, worker, claim.Ask{N: tasks, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: tasks}}})
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range trip.Claims {
			if _, err := claim.Of(q).Settle(ctx, p, worker, queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}}, claim.Ask{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// ClusterOfOne starts a cluster of one node with all slots, and returns a client.
func ClusterOfOne(t *testing.T) redis.UniversalClient {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, bus, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	server := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	ctx := context.Background()
	if err := server.Client(t).Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	await.Until(t, "the cluster is up", func() bool { return rdb.Get(ctx, "x").Err() == redis.Nil })
	return rdb
}

// Exported returns the lines of an export but the last, which must count the others.
func Exported(tb testing.TB, q *queue.Queue) []string {
	tb.Helper()
	var out bytes.Buffer
	if err := inspect.ExportTo(context.Background(), q, &out); err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if last := lines[len(lines)-1]; last != fmt.Sprintf(`{"type":"end","count":%d}`, len(lines)-1) {
		tb.Errorf("the last of %d lines is %s, want their number", len(lines), last)
	}
	return lines[:len(lines)-1]
}

// Around is a redis.Hook that calls Before and After around commands whose names begin with Name.
type Around struct {
	Name   string
	Before func()
	After  func(error)
}

// DialHook implements redis.Hook.
func (Around) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (Around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (a Around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), a.Name) {
			return next(ctx, cmd)
		}
		if a.Before != nil {
			a.Before()
		}
		err := next(ctx, cmd)
		if a.After != nil {
			a.After(err)
		}
		return err
	}
}

// Subscriptions returns the number of subscriptions of all clients to all channels.
func Subscriptions(tb testing.TB, q *queue.Queue) int {
	tb.Helper()
	ctx, sum := context.Background(), 0
	channels, err := q.Client().PubSubChannels(ctx, "*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	counts, err := q.Client().PubSubNumSub(ctx, channels...).Result()
	if err != nil {
		tb.Fatal(err)
	}
	for _, n := range counts {
		sum += int(n)
	}
	return sum
}
