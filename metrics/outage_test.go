package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// commands counts the commands and connections of a client.
type commands struct{ n, scrapes atomic.Int64 }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		if cmd.Name() == "smembers" { // one in each read of a namespace with one partition
			c.scrapes.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestTenConcurrentScrapesAreOneRead(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	queuetest.Busy(t, q, 10)
	count := &commands{}
	rdb.AddHook(count)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewNamespace(q, metrics.Config{CacheFor: time.Minute}))
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	all := count.n.Load()
	if n := count.scrapes.Load(); n != 1 {
		t.Errorf("ten scrapes made %d reads, want 1", n)
	}
	if _, err := registry.Gather(); err != nil || count.n.Load() != all {
		t.Errorf("a scrape within CacheFor sent %d commands, %v, want none", count.n.Load()-all, err)
	}
}

func TestAScrapeAfterCacheForReadsAgain(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	namespace := metrics.NewNamespace(q, metrics.Config{CacheFor: time.Millisecond})
	gather(t, namespace)
	queuetest.Enqueue(t, q, queue.Task{})
	await.Until(t, "the new task is exported", func() bool {
		return value(gather(t, namespace), "curfew_tasks", "status", "ready") == 1
	})
}

// A scrape must not hang with Redis, must not return what was true before, and must not pile up reads.
func TestAScrapeWhileRedisHangsSaysSo(t *testing.T) {
	for _, endless := range []bool{false, true} {
		upstream := redistest.Start(t)
		proxy := faultproxy.Start(t, upstream.Addr)
		options := &redis.Options{Addr: proxy.Addr, ContextTimeoutEnabled: !endless, MaxRetries: -1}
		if endless { // a client that ignores the end of a context
			options.ReadTimeout = -2
		}
		rdb := redis.NewClient(options)
		t.Cleanup(func() { rdb.Close() })
		var log bytes.Buffer
		var mu sync.Mutex
		q := queuetest.Open(t, rdb, queue.Config{Logger: slog.New(slog.NewTextHandler(&locked{&mu, &log}, nil))})
		queuetest.Busy(t, q, 3)
		namespace := metrics.NewNamespace(q, metrics.Config{CacheFor: time.Millisecond, Timeout: 500 * time.Millisecond})
		if n := value(gather(t, namespace), "curfew_up"); n != 1 {
			t.Fatalf("curfew_up = %v, want 1", n)
		}
		proxy.Partition(true)
		await.Until(t, "a scrape fails", func() bool { return value(gather(t, namespace), "curfew_up") == 0 })
		count := &commands{}
		rdb.AddHook(count)
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				for range 3 {
					all := gather(t, namespace)
					if len(all) != 2 || value(all, "curfew_up") != 0 || all["curfew_up"] == nil || all["curfew_scrape_duration_seconds"] == nil {
						t.Errorf("a scrape has %d metrics with up %v, want up 0 and the duration alone", len(all), value(all, "curfew_up"))
					}
				}
			})
		}
		group.Wait()
		if n := count.n.Load(); endless && n > 3 {
			t.Errorf("%d commands were sent while the first one got no reply, want no more than its own", n)
		}
		proxy.Partition(false)
		proxy.CloseAll()
		await.Until(t, "the scrape succeeds again", func() bool {
			all := gather(t, namespace)
			return value(all, "curfew_up") == 1 && all["curfew_tasks"] != nil
		})
		mu.Lock()
		lines := strings.Count(log.String(), "metrics cannot be read")
		mu.Unlock()
		if lines != 1 {
			t.Errorf("the log says %d times that the metrics cannot be read, want once:\n%s", lines, &log)
		}
	}
}

// locked is a buffer that several goroutines write.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestRedisCanBeAwayAndComeBack(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	q := queuetest.Open(t, server.Client(t), queue.Config{})
	queuetest.Busy(t, q, 3)
	namespace := metrics.NewNamespace(q, metrics.Config{CacheFor: time.Millisecond, Timeout: time.Minute})
	before := value(gather(t, namespace), "curfew_tasks_finished_total")
	server.Kill()
	if all := gather(t, namespace); len(all) != 2 || value(all, "curfew_up") != 0 {
		t.Errorf("without Redis a scrape has %d metrics and up %v, want up 0 and the duration alone", len(all), value(all, "curfew_up"))
	}
	server.Restart(t)
	var after float64
	await.Until(t, "the scrape succeeds again", func() bool {
		all := gather(t, namespace)
		after = value(all, "curfew_tasks_finished_total")
		return value(all, "curfew_up") == 1
	})
	if before != 3 || after != before {
		t.Errorf("%v tasks have ended before Redis was away, and %v after, want 3", before, after)
	}
}

// hidden are the metrics that need a key. 0 would be wrong if it cannot be read, and so would a sum without one of the kinds.
var hidden = map[string][]string{
	"figures:k0": {"task_wait_seconds", "timeout_detection_lag_seconds", "late_completions_total", "wait_wakeups_total"},
	"kinds":      {"task_wait_seconds", "tasks_enqueued_total", "tasks_finished_total", "task_duration_seconds"},
	"deadlines":  {"deadlines_overdue", "deadlines_due", "deadlines"},
	"workers":    {"workers", "queue_workers"},
	"queues":     {"tasks", "queue_paused"},
}

// A worker in another language may not report its queues. Then a queue without known workers may have one.
func TestAWorkerThatDoesNotReportItsQueuesHidesZeros(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	for _, name := range []string{"mail", "pages"} {
		queuetest.Enqueue(t, q, queue.Task{Queue: name})
	}
	workers := func() (found []string) {
		for _, m := range gather(t, metrics.NewNamespace(q, metrics.Config{}))["curfew_queue_workers"].GetMetric() {
			found = append(found, fmt.Sprint(m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue()))
		}
		return found
	}
	report(t, q, "one", `{"queues":{"mail":1}}`)
	if got := workers(); !slices.Equal(got, []string{"mail 1", "pages 0"}) {
		t.Errorf("curfew_queue_workers are %v, want mail 1 and pages 0", got)
	}
	report(t, q, "other", `{}`)
	if got := workers(); !slices.Equal(got, []string{"mail 1"}) {
		t.Errorf("curfew_queue_workers are %v, want mail 1, and no value of pages", got)
	}
}

func TestADamagedKeyHidesOnlyItsOwnValues(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, key := range []string{"figures:k0", "kinds", "deadlines", "workers", "ready:default", "queue:default", "queues", "waits"} {
			q := queuetest.Open(t, rdb, queue.Config{Namespace: "damaged-" + strings.ReplaceAll(key, ":", "-")})
			queuetest.Busy(t, q, 3)
			name := q.Root(0) + ":" + key
			rdb.Del(t.Context(), name)
			if err := rdb.Set(t.Context(), name, "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			all := gather(t, metrics.NewNamespace(q, metrics.Config{}))
			if all["curfew_up"] == nil || value(all, "curfew_up") != 0 {
				t.Errorf("%s has the wrong type, and up is %v, want 0", key, value(all, "curfew_up"))
			}
			if all["curfew_last_sweep_timestamp_seconds"] == nil || key != "deadlines" && all["curfew_deadlines_due"] == nil {
				t.Errorf("%s has the wrong type, and a scrape has no deadlines or sweeps", key)
			}
			for _, name := range hidden[key] {
				if all["curfew_"+name] != nil {
					t.Errorf("%s has the wrong type, and curfew_%s is %v, want no value", key, name, all["curfew_"+name].GetMetric())
				}
			}
			want := map[string]float64{"figures:k0": 2, "kinds": 0}
			n, special := want[key]
			if !special {
				n = 3
			}
			if got := value(all, "curfew_tasks_finished_total"); got != n {
				t.Errorf("%s has the wrong type, and %v tasks have ended, want %v", key, got, n)
			}
		}
	})
}

// Without the tasks of one small kind, the others that share its label would be a total that shrinks.
func TestAKindThatCannotBeReadHidesTheOthers(t *testing.T) {
	name := redistest.Namespace(t)
	q, small := exporter(t, name, metrics.Config{MaxKinds: 1})
	for kind, n := range map[string]int{"large": 8, "small": 1, "tiny": 1} {
		cancelled(t, q, slices.Repeat([]queue.Task{{Kind: kind}}, n))
	}
	others := func() float64 { return value(gather(t, small), "curfew_tasks_finished_total", "kind", metrics.Other) }
	if n := others(); n != 2 {
		t.Fatalf("%v tasks of other kinds have ended, want 2", n)
	}
	key := q.Root(0) + ":figures:tiny"
	if err := errors.Join(q.Client().Rename(t.Context(), key, key+"-moved").Err(), q.Client().Set(t.Context(), key, "x", 0).Err()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "up is 0", func() bool { return value(gather(t, small), "curfew_up") == 0 })
	for name, family := range gather(t, small) {
		if slices.Contains(labelsOf(family, "kind"), metrics.Other) {
			t.Errorf("one of the other kinds cannot be read, and %s has a value of them", name)
		}
	}
	if err := q.Client().Rename(t.Context(), key+"-moved", key).Err(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the other kinds are back", func() bool { return others() == 2 })
}

// The queues of overdue tasks are in their records. Who may not read them knows no number of any queue, and all else.
func TestWhoMayNotReadTasksSeesNoOverdueQueues(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Enqueue(t, queuetest.Open(t, admin, queue.Config{}), queue.Task{Timeout: time.Millisecond})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "reader", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	q := queuetest.Open(t, rdb, queue.Config{})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "-mget", "-get", "-getrange").Err(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the task is overdue", func() bool {
		due, err := inspect.Deadlines(t.Context(), q, time.Minute, 1)
		return err == nil && due.Overdue == 1
	})
	all := gather(t, metrics.NewNamespace(q, metrics.Config{}))
	if all["curfew_deadlines_overdue"] != nil || value(all, "curfew_up") != 0 || all["curfew_deadlines_due"] == nil || all["curfew_tasks"] == nil {
		t.Errorf("up is %v, and the overdue tasks are %v, want up 0 and no value", value(all, "curfew_up"), all["curfew_deadlines_overdue"].GetMetric())
	}
}

// A series with empty labels would say that the policy of evictions is wrong.
func TestWhoMayNotAskForINFOHasNoRedisInfo(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Open(t, admin, queue.Config{})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "reader", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	all := gather(t, metrics.NewNamespace(queuetest.Open(t, rdb, queue.Config{}), metrics.Config{Timeout: time.Minute}))
	if all["curfew_redis_info"] != nil || value(all, "curfew_up") != 1 || all["curfew_tasks"] == nil && all["curfew_deadlines"] == nil {
		t.Errorf("up is %v, and redis_info %v, want up 1 and no value", value(all, "curfew_up"), all["curfew_redis_info"].GetMetric())
	}
}
