package metrics_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// gate is a hook of a client that stops reads of figures while it is shut.
type gate struct {
	mu      sync.Mutex // held while it is shut
	stopped atomic.Int64
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "hscan" {
			g.stopped.Add(1)
			defer g.stopped.Add(-1)
			g.mu.Lock()
			defer g.mu.Unlock()
		}
		return next(ctx, cmds)
	}
}

// However long it takes to read the totals, a scrape is answered: with those of the read before, and all else as it is now.
func TestAScrapeDoesNotWaitForTheTotals(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	queuetest.Busy(t, q, 3)
	slow := &gate{}
	rdb.AddHook(slow)
	namespace := metrics.NewNamespace(q, metrics.Config{CacheFor: time.Nanosecond, Timeout: time.Second})
	slow.mu.Lock()
	var all map[string]*dto.MetricFamily
	await.Until(t, "all but the totals is read", func() bool { all = gather(t, namespace); return all["curfew_tasks"] != nil })
	if value(all, "curfew_up") != 0 || all["curfew_deadlines"] == nil || all["curfew_tasks_finished_total"] != nil || all["curfew_totals_read_timestamp_seconds"] != nil {
		t.Errorf("before the first totals are read, up is %v, and the totals are %v, want up 0 and all else but the totals", value(all, "curfew_up"), all["curfew_tasks_finished_total"])
	}
	slow.mu.Unlock()
	await.Until(t, "up is 1", func() bool {
		all = gather(t, namespace)
		return value(all, "curfew_up") == 1 && value(all, "curfew_tasks_finished_total") == 3
	})
	read := value(all, "curfew_totals_read_timestamp_seconds")
	// real time: the clocks are those of one machine
	if ago := time.Since(time.UnixMilli(int64(read * 1000))); ago < 0 || ago > time.Hour {
		t.Errorf("the totals are of %v ago", ago)
	}
	slow.mu.Lock()
	await.Until(t, "a read of totals is stopped", func() bool { gather(t, namespace); return slow.stopped.Load() > 0 })
	up := func() {
		t.Helper()
		await.Until(t, "up is 1 while the totals are read", func() bool { all = gather(t, namespace); return value(all, "curfew_up") == 1 })
	}
	up()
	read = value(all, "curfew_totals_read_timestamp_seconds")
	cancelled(t, q, []queue.Task{{Kind: "k0"}})
	up()
	before := value(all, "curfew_tasks", "status", "ready")
	queuetest.Enqueue(t, q, queue.Task{Kind: "k0"})
	for range 3 {
		up()
		if value(all, "curfew_tasks_finished_total") != 3 || value(all, "curfew_totals_read_timestamp_seconds") != read {
			t.Errorf("while the totals are read, %v tasks have ended and the totals are of %v, want 3 and %v",
				value(all, "curfew_tasks_finished_total"), value(all, "curfew_totals_read_timestamp_seconds"), read)
		}
		if n := value(all, "curfew_tasks", "status", "ready"); n != before+1 {
			t.Errorf("while the totals are read, %v tasks are ready, want %v", n, before+1)
		}
	}
	if n := slow.stopped.Load(); n != 1 {
		t.Errorf("%d reads of totals are under way, want 1", n)
	}
	slow.mu.Unlock()
	await.Until(t, "the new totals are exported", func() bool {
		all = gather(t, namespace)
		return value(all, "curfew_tasks_finished_total") == 4 && value(all, "curfew_totals_read_timestamp_seconds") > read
	})
}

// crowd writes the counts of pairs of a queue and a kind: in each, one task has completed.
const crowd = `
for k = 1, tonumber(ARGV[2]) do
  redis.call("SADD", KEYS[1] .. ":kinds", "kind" .. k)
  for q = 1, tonumber(ARGV[1]) do
    local name = "queue" .. q
    redis.call("HSET", KEYS[1] .. ":figures:kind" .. k, name .. " ended COMPLETED", 1, name .. " enqueued client now", 1,
      name .. " duration 10", 1, name .. " duration sum", 7, name .. " waiting 5", 1, name .. " waiting sum", 4)
  end
end`

// More pairs than a scrape has time for are counted all the same, and have a bounded number of time series.
func TestACrowdedNamespaceIsExported(t *testing.T) {
	const queues, kinds = 250, 100
	rdb := redistest.Shared(t).Client(t)
	var log bytes.Buffer
	var mu sync.Mutex
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.NewTextHandler(&locked{&mu, &log}, nil))})
	if err := rdb.Eval(t.Context(), crowd, []string{q.Root(0)}, queues, kinds).Err(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	namespace := metrics.NewNamespace(q, metrics.Config{CacheFor: time.Nanosecond, Timeout: time.Minute})
	await.Until(t, "up is 1", func() bool { return value(gather(t, namespace), "curfew_up") == 1 })
	all := gather(t, namespace)
	if n := value(all, "curfew_tasks_finished_total"); n != queues*kinds {
		t.Errorf("%v tasks have ended, want %d", n, queues*kinds)
	}
	if n := value(all, "curfew_pairs_folded"); n != queues*kinds-1000 {
		t.Errorf("%v pairs are folded, want %d", n, queues*kinds-1000)
	}
	if n := len(all["curfew_tasks_enqueued_total"].GetMetric()); n > 1000+queues {
		t.Errorf("%d time series of created tasks, want at most 1,000 pairs, and one more for each queue", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "no label of their own"); n != 1 || !strings.Contains(log.String(), fmt.Sprintf("pairs=%d", queues*kinds-1000)) || strings.Contains(log.String(), "cannot be read") {
		t.Errorf("the log says %d times that pairs are folded, want once, and nothing of an error:\n%s", n, &log)
	}
}
