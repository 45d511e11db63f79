package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// late is the Timeout of the collectors that opener makes.
const late = 500 * time.Millisecond

// opener is a collector that opens its namespace itself, as that of `curfew serve` does.
type opener struct {
	*testing.T
	prometheus.Collector
	log   *bytes.Buffer
	mu    sync.Mutex
	opens atomic.Int64
}

func newOpener(t *testing.T, rdb redis.UniversalClient) *opener {
	o := &opener{T: t, log: &bytes.Buffer{}}
	var once sync.Mutex
	var q *queue.Queue
	logger := slog.New(slog.NewTextHandler(&locked{&o.mu, o.log}, nil))
	open := func(ctx context.Context) (*queue.Queue, error) {
		o.opens.Add(1)
		once.Lock()
		defer once.Unlock()
		if q != nil {
			return q, nil
		}
		opened, err := queue.Open(ctx, rdb, queue.Config{Namespace: "shop", Existing: true, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			q = opened
		}
		return opened, err
	}
	o.Collector = metrics.OpenNamespace("shop", open, logger, metrics.Config{CacheFor: time.Nanosecond, Timeout: late})
	return o
}

// away scrapes, and checks that the scrape has nothing but up 0 and its own duration.
func (o *opener) away(when string) {
	o.Helper()
	all := gather(o.T, o)
	if len(all) != 2 || all["curfew_up"] == nil || value(all, "curfew_up") != 0 || all["curfew_scrape_duration_seconds"] == nil {
		o.Errorf("%s, a scrape has up %v and %d metrics, want up 0 and the duration alone", when, value(all, "curfew_up"), len(all))
	}
}

// back waits until a scrape succeeds, and checks that it has the ends of three tasks.
func (o *opener) back(when string) {
	o.Helper()
	await.Until(o.T, "up is 1 "+when, func() bool {
		all := gather(o.T, o)
		if value(all, "curfew_up") == 0 {
			return false
		}
		if n := value(all, "curfew_tasks_finished_total"); n != 3 {
			o.Errorf("%s, %v tasks have ended, want 3", when, n)
		}
		return true
	})
}

func TestANamespaceIsOpenedWhenRedisIsThere(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	queuetest.Busy(t, queuetest.Open(t, server.Client(t), queue.Config{Namespace: "shop"}), 3)
	for what, outage := range map[string]struct{ begin, end func() }{
		"it is down": {server.Kill, func() { server.Restart(t) }},
		"it hangs":   {server.Pause, server.Resume},
	} {
		// One collector is made during the outage, the other one before.
		known := newOpener(t, server.Client(t))
		known.back("before")
		outage.begin()
		o := newOpener(t, server.Client(t))
		for range 2 {
			o.away("because " + what + " at the start")
			known.away("because " + what)
		}
		outage.end()
		for _, o := range []*opener{o, known} {
			o.back("after " + what)
			o.mu.Lock()
			if n := strings.Count(o.log.String(), "cannot be read"); n != 1 {
				t.Errorf("because %s, the log says %d times that the metrics cannot be read, want once:\n%s", what, n, o.log)
			}
			o.mu.Unlock()
		}
	}
}

// hangs stops Redis when a client sends its n-th command.
type hangs struct {
	left  atomic.Int64
	pause func()
}

func (h *hangs) count(n int) {
	if h.left.Add(-int64(n)) < 0 {
		h.pause()
	}
}
func (h *hangs) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *hangs) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(1)
		return next(ctx, cmd)
	}
}
func (h *hangs) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.count(1)
		return next(ctx, cmds)
	}
}

func TestRedisHangsInTheMiddleOfAScrape(t *testing.T) {
	server := redistest.Start(t)
	queuetest.Busy(t, queuetest.Open(t, server.Client(t), queue.Config{Namespace: "shop"}), 3)
	rdb := server.Client(t)
	o := newOpener(t, rdb)
	o.back("before")
	stop := &hangs{pause: server.Pause}
	stop.left.Store(1 << 40)
	rdb.AddHook(stop)
	for _, n := range []int64{1, 3, 6} {
		stop.left.Store(n)
		o.away("while Redis hangs")
		stop.left.Store(1 << 40)
		server.Resume()
		o.back("after Redis hung")
	}
}

func TestANamespaceThatIsGoneOrNewerHasNoValues(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	o := newOpener(t, rdb)
	o.away("before the namespace exists")
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	queuetest.Busy(t, q, 3)
	o.back("when the namespace exists")

	was := rdb.HGet(t.Context(), q.Root(0), "version").Val()
	rdb.HSet(t.Context(), q.Root(0), "version", 99)
	unopened := newOpener(t, rdb)
	o.away("because a newer program has the namespace")
	unopened.away("because a newer program has the namespace")
	rdb.HSet(t.Context(), q.Root(0), "version", was)
	o.back("when it is the old version again")
	unopened.back("when it is the old version again")

	for _, flush := range []func(context.Context) *redis.StatusCmd{rdb.FlushAll, func(ctx context.Context) *redis.StatusCmd {
		rdb.FunctionFlush(ctx)
		return rdb.FlushAll(ctx)
	}} {
		flush(t.Context())
		o.away("because Redis was flushed")
		queuetest.Busy(t, queuetest.Open(t, rdb, queue.Config{Namespace: "shop"}), 3)
		o.back("when the namespace was created again")
	}
}

func TestOpenNamespaceNeedsWhatItCalls(t *testing.T) {
	open := func(context.Context) (*queue.Queue, error) { return nil, errors.New("no") }
	for what, collector := range map[string]prometheus.Collector{
		"open":   metrics.OpenNamespace("shop", nil, slog.Default(), metrics.Config{}),
		"logger": metrics.OpenNamespace("shop", open, nil, metrics.Config{}),
		"config": metrics.OpenNamespace("shop", open, slog.Default(), metrics.Config{Timeout: -1}),
	} {
		if err := prometheus.NewRegistry().Register(collector); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("without a valid %s, Register = %v, want ErrInvalid", what, err)
		}
	}
}
