package faults

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// carry runs a worker for n tasks whose payloads and results have size bytes. It checks that each
// runs once.
func (s *stage) carry(rdb redis.UniversalClient, n, size, concurrency int) {
	s.Helper()
	payload := bytes.Repeat([]byte("p"), size)
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "large", Payload: payload}
	}
	ids := s.Enqueue(tasks...)
	var mu sync.Mutex
	runs := map[string]int{}
	q, err := queue.Open(s.Context(), rdb, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
	if err != nil {
		s.Fatal(err)
	}
	w := worker.New(q, worker.Config{Concurrency: concurrency})
	stop := s.work(w, map[string]worker.Handler{"large": func(ctx context.Context, got []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[worker.Info(ctx).ID]++
		if !bytes.Equal(got, payload) {
			s.Errorf("the handler of %s got another payload", worker.Info(ctx).ID)
		}
		return bytes.ToUpper(got), nil
	}})
	await.Until(s, "the worker has completed all tasks", func() bool { return w.Stats().Completed == int64(n) })
	stop()
	for _, id := range ids {
		if r := s.Record(id); r.Status != queue.Completed || len(r.Result) != size || r.Epoch != 1 || runs[id] != 1 {
			s.Errorf("%s is %s with a result of %d bytes, at epoch %d, and ran %d times", id, r.Status, len(r.Result), r.Epoch, runs[id])
		}
	}
	if c := w.Stats(); c.Refused+c.Dropped+c.Released != 0 {
		s.Errorf("the worker counts %+v, want none refused, dropped or released", c)
	}
}

// A worker fetches more than its slow link carries in a second. The link carries each payload and each result once: no call is repeated
// because its reply is slow.
func TestALinkThatIsSlow(t *testing.T) {
	t.Parallel()
	const rate = 1_000_000
	for claim, row := range map[string]struct {
		n, size, concurrency int
		client               func(addr string) redis.UniversalClient
	}{
		"many slots": {harness.Times(12, 12, 60), harness.Times(128<<10, 256<<10, 1<<20), 50, func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		}},
		// go-redis waits three seconds for a reply, and three payloads of 1 MiB in one call take longer.
		"a client with the default options of go-redis": {harness.Times(3, 3, 12), 1 << 20, 3, func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr})
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			checkPassed(t, row.n, row.size, func() int64 {
				s := newStage(t, server.Addr, server.Addr)
				addr, passed := faultproxy.Slow(t, server.Addr, rate)
				rdb := row.client(addr)
				t.Cleanup(func() { rdb.Close() })
				s.carry(rdb, row.n, row.size, row.concurrency)
				return passed()
			})
		})
	}
}

// A worker of several partitions takes slots away from a call that hangs. On a slow link calls take
// long. Their tasks must not be given back and fetched again all the time.
func TestASlowLinkToSeveralPartitions(t *testing.T) {
	t.Parallel()
	const rate, size = 1_000_000, 256 << 10
	n := harness.Times(8, 12, 80)
	server := redistest.Start(t)
	checkPassed(t, n, size, func() int64 {
		s := harness.New(t, server.Addr, queue.Config{Partitions: 4})
		for range n { // one by one: the partitions take turns
			if _, err := s.Q.Enqueue(t.Context(), queue.Task{Kind: "large", Payload: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
		addr, passed := faultproxy.Slow(t, server.Addr, rate)
		w := worker.New(s.AnotherAt(addr), worker.Config{Concurrency: 12, NoReaper: true})
		w.HandleRaw("large", func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil })
		stop := s.Run(w.Run)
		await.Until(t, "the worker has completed all tasks", func() bool { return w.Stats().Completed == int64(n) })
		stop()
		t.Logf("%d tasks were given back", w.Stats().Released)
		return passed()
	})
}

// checkPassed checks how many bytes a link passes for n tasks whose payloads and results have size bytes. A machine that stops for
// seconds makes a client repeat calls, so one run of three within the limit is enough.
func checkPassed(t *testing.T, n, size int, run func() (passed int64)) {
	t.Helper()
	bytes := int64(2 * n * size)
	for range 3 {
		passed := run()
		t.Logf("%d × %d bytes there and back: the link passed %.2f times as many", n, size, float64(passed)/float64(bytes))
		if passed <= bytes*3/2 {
			return
		}
	}
	t.Errorf("the link passed more than %d bytes each time, want %d and little more: tasks were fetched or reported again", bytes*3/2, bytes)
}

// A client waits for the rest of a slow reply, but not after the end of the caller's context.
func TestAReplyThatArrivesSlowlyEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	addr, _ := faultproxy.Slow(t, server.Addr, 200_000)
	s := newStage(t, addr, server.Addr)
	id := s.Enqueue(queue.Task{Kind: "k", Payload: make([]byte, 1<<20)})[0]
	q := s.Another()
	for claim, end := range map[string]func() (context.Context, context.CancelFunc){
		"a deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 500*time.Millisecond)
		},
		"a cancellation": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := end()
		_, err := q.Get(ctx, id) // the whole reply takes five seconds
		if err == nil || !errors.Is(err, ctx.Err()) {
			t.Errorf("%s: Get = %v, want the context's error", claim, err)
		}
		cancel()
	}
}
