package races

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// patience is how long a test waits for what must happen; what takes it has failed.
const patience = 20 * time.Second

// fallback is the longest that these reapers rest: the default.
const fallback = 500 * time.Millisecond

// stage is a namespace of a test's own on a real server.
type stage struct {
	*testing.T
	ctx  context.Context
	addr string
	rdb  *redis.Client
	q    *queue.Queue
	logs *logs

	complaints int
}

func newStage(t *testing.T, addr string, config queue.Config) *stage {
	t.Helper()
	s := &stage{T: t, ctx: t.Context(), addr: addr, logs: &logs{}}
	config.Namespace = redistest.Namespace(t)
	config.Logger = slog.New(slog.NewTextHandler(s.logs, nil))
	s.rdb = client(t, addr)
	var err error
	if s.q, err = queue.Open(s.ctx, s.rdb, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", s.logs.String())
		}
	})
	return s
}

// client is a client of its own: no two participants share connections.
func client(t *testing.T, addr string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// another opens the namespace again, at addr: a producer, a worker, a reaper.
func (s *stage) another(addr string) *queue.Queue {
	s.Helper()
	q, err := queue.Open(s.ctx, client(s.T, addr), queue.Config{Namespace: s.q.Namespace(), Logger: s.q.Logger()})
	if err != nil {
		s.Fatal(err)
	}
	return q
}

func (s *stage) key(name string) string { return s.q.Root(0) + ":" + name }

func (s *stage) enqueue(tasks ...queue.Task) []string {
	s.Helper()
	receipts, err := s.q.EnqueueAll(s.ctx, tasks)
	if err != nil {
		s.Fatal(err)
	}
	ids := make([]string, len(receipts))
	for i, r := range receipts {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
		ids[i] = r.ID
	}
	return ids
}

func (s *stage) fetch(worker string, seq int64, n int, lease time.Duration) []queue.Claim {
	s.Helper()
	trip, err := s.q.Attempts().Fetch(s.ctx, 0, worker, ask(seq, n, lease))
	if err != nil {
		s.Fatal(err)
	}
	return trip.Claims
}

func ask(seq int64, n int, lease time.Duration) queue.Ask {
	return queue.Ask{N: n, Seq: seq, Lease: lease, Quotas: []queue.Quota{{Queue: "default", N: n}}}
}

func (s *stage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *stage) zcard(clock string) int64 { return s.rdb.ZCard(s.ctx, s.key(clock)).Val() }

// run starts what blocks until its context ends; stop returns when it has ended.
func (s *stage) run(what func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- what(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := receive(s.T, ended, "Run returns"); err != nil {
			s.Errorf("Run = %v, want nil", err)
		}
	})
	s.Cleanup(stop)
	return stop
}

// reap runs a reaper in this process.
func (s *stage) reap(config reaper.Config) (stop func()) {
	s.Helper()
	return s.run(reaper.New(s.another(s.addr), config).Run)
}

// receive takes a value that must come.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("never: " + what)
		panic("unreachable")
	}
}

// eventually waits for what sends no signal.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); {
		if time.Now().After(until) {
			t.Fatal("never: " + what)
		}
		// sleeps: a state of Redis tells nobody when it is reached
		time.Sleep(2 * time.Millisecond)
	}
}

// until waits for an instant.
//
// sleeps: only where the matter of a test is what happens at a time, or in a span of it
func until(instant time.Time) { <-at(instant) }

// at is closed at an instant.
func at(instant time.Time) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(time.Until(instant), func() { close(c) })
	return c
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) count(s string) int { return strings.Count(l.String(), s) }

// spans are measured times.
type spans []time.Duration

// at is the span that so much of all are not longer than: at(0.5) is the median.
func (s spans) at(part float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}
