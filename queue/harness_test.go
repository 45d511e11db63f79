package queue_test

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

// busy makes some events in every partition: tasks come, start, and end.
func busy(tb testing.TB, q *queue.Queue, tasks int) {
	tb.Helper()
	ctx, worker := context.Background(), queue.NewCall()
	for i := range tasks {
		enqueue(tb, q, queue.Task{Kind: fmt.Sprintf("k%d", i)})
	}
	for p := range q.Partitions() {
		trip, err := q.Fetch(ctx, p, worker, queue.Ask{N: tasks, Seq: 1, Lease: time.Minute, Quotas: []queue.Quota{{Queue: "default", N: tasks}}})
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range trip.Claims {
			if _, err := q.Settle(ctx, p, worker, queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}}, queue.Ask{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func clusterOfOne(t *testing.T) redis.UniversalClient {
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
	for give := time.Now().Add(20 * time.Second); rdb.Get(ctx, "x").Err() != redis.Nil; {
		if time.Now().After(give) {
			t.Fatal("the cluster does not come up")
		}
		time.Sleep(20 * time.Millisecond) // sleeps: a cluster that comes up has no signal
	}
	return rdb
}

// exported is a whole export by ExportTo, without its last line, which must count the rest.
func exported(tb testing.TB, q *queue.Queue) []string {
	tb.Helper()
	var out bytes.Buffer
	if err := q.ExportTo(context.Background(), &out); err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if last := lines[len(lines)-1]; last != fmt.Sprintf(`{"type":"end","lines":%d}`, len(lines)-1) {
		tb.Errorf("the last of %d lines is %s", len(lines), last)
	}
	return lines[:len(lines)-1]
}

// around is called around each command of a client whose name begins so.
type around struct {
	name   string
	before func()
	after  func(error)
}

func (around) DialHook(next redis.DialHook) redis.DialHook { return next }
func (around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), a.name) {
			return next(ctx, cmd)
		}
		if a.before != nil {
			a.before()
		}
		err := next(ctx, cmd)
		if a.after != nil {
			a.after(err)
		}
		return err
	}
}
