package faults

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// carry runs a worker for n tasks whose payloads and results have size bytes. It checks that each
// runs once, and returns how long all took.
func (s *stage) carry(rdb redis.UniversalClient, n, size, concurrency int) time.Duration {
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
	began := time.Now()
	stop := s.work(w, map[string]worker.Handler{"large": func(ctx context.Context, got []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[worker.Info(ctx).ID]++
		if !bytes.Equal(got, payload) {
			s.Errorf("the handler of %s got another payload", worker.Info(ctx).ID)
		}
		return bytes.ToUpper(got), nil
	}})
	give := time.Now().Add(10 * time.Minute)
	for w.Stats().Completed < int64(n) && time.Now().Before(give) && !s.Failed() {
		stages.Pass(10 * time.Millisecond) // sleeps: nothing notifies of the last task
	}
	took := time.Since(began)
	stop()
	for _, id := range ids {
		if r := s.Record(id); r.Status != queue.Completed || len(r.Result) != size || r.Epoch != 1 || runs[id] != 1 {
			s.Errorf("%s is %s with a result of %d bytes, at epoch %d, and ran %d times", id, r.Status, len(r.Result), r.Epoch, runs[id])
		}
	}
	if c := w.Stats(); c.Refused+c.Dropped+c.Released != 0 {
		s.Errorf("the worker counts %+v, want none refused, dropped or released", c)
	}
	return took
}

// A worker fetches more than its slow link carries in a second. It completes all tasks in little more
// than the time of the bytes: no call is repeated because its reply is slow.
func TestALinkThatIsSlow(t *testing.T) {
	t.Parallel()
	const rate = 1_000_000
	for claim, row := range map[string]struct {
		n, size, concurrency int
		client               func(addr string) redis.UniversalClient
	}{
		"many slots": {stages.Times(12, 12, 60), stages.Times(128<<10, 256<<10, 1<<20), 50, func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		}},
		// go-redis waits three seconds for a reply, and three payloads of 1 MiB in one call take longer.
		"a client with the default options of go-redis": {stages.Times(3, 3, 12), 1 << 20, 3, func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr})
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			s := newStage(t, server.Addr, server.Addr)
			rdb := row.client(faultproxy.Slow(t, server.Addr, rate))
			t.Cleanup(func() { rdb.Close() })
			took := s.carry(rdb, row.n, row.size, row.concurrency)
			bytes := time.Duration(2*row.n*row.size) * time.Second / rate
			t.Logf("%d × %d bytes there and back took %v; the bytes take %v", row.n, row.size, took.Round(time.Millisecond), bytes.Round(time.Millisecond))
			if took > bytes*3/2+await.Stall {
				t.Errorf("that is more than 1.5 times the time of the bytes")
			}
		})
	}
}

// A worker of several partitions takes slots away from a call that hangs. On a slow link calls take
// long. Their tasks must not be given back and fetched again all the time.
func TestASlowLinkToSeveralPartitions(t *testing.T) {
	t.Parallel()
	const rate, size = 1_000_000, 256 << 10
	n := stages.Times(8, 12, 80)
	server := redistest.Start(t)
	s := stages.New(t, server.Addr, queue.Config{Partitions: 4})
	for range n { // one by one: the partitions take turns
		if _, err := s.Q.Enqueue(t.Context(), queue.Task{Kind: "large", Payload: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	w := worker.New(s.AnotherAt(faultproxy.Slow(t, server.Addr, rate)), worker.Config{Concurrency: 12, NoReaper: true})
	w.HandleRaw("large", func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil })
	began := time.Now()
	stop := s.Run(w.Run)
	for w.Stats().Completed < int64(n) && time.Since(began) < 5*time.Minute {
		stages.Pass(50 * time.Millisecond) // sleeps: nothing notifies of the last task
	}
	took, bytes := time.Since(began), time.Duration(2*n*size)*time.Second/rate
	stop()
	t.Logf("%d × %d bytes there and back took %v, %d were given back; the bytes take %v", n, size, took.Round(time.Millisecond), w.Stats().Released, bytes.Round(time.Millisecond))
	if took > bytes*3/2+await.Stall {
		t.Errorf("that is more than 1.5 times the time of the bytes")
	}
}

// A client waits for the rest of a slow reply, but not after the end of the caller's context.
func TestAReplyThatArrivesSlowlyEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newStage(t, faultproxy.Slow(t, server.Addr, 200_000), server.Addr)
	id := s.Enqueue(queue.Task{Kind: "k", Payload: make([]byte, 1<<20)})[0]
	q := s.Another()
	for claim, end := range map[string]func() (context.Context, context.CancelFunc){
		"a deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 1500*time.Millisecond)
		},
		"a cancellation": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(1500*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := end()
		began := time.Now()
		_, err := q.Get(ctx, id)
		took := time.Since(began)
		cancel()
		if err == nil || took > 2*time.Second {
			t.Errorf("%s: Get = %v after %v, want the context's error after 1.5s", claim, err, took)
		}
	}
}

// Calls with large tasks are short also at high concurrency: a call carries a bounded number of bytes. So other
// clients do not wait long.
func TestManyLargeTasksHoldNobodyUp(t *testing.T) {
	const most, size = 40 * time.Millisecond, 1 << 20
	n := stages.Times(50, 60, 500)
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	rdb, alone := stages.Client(t, server.Addr), server.Client(t)
	meter := redistest.NewMeter(t, alone, func(cmd redis.Cmder) string {
		if lua.IsVerb(cmd.Name()) {
			return "a call"
		}
		return ""
	})
	rdb.AddHook(meter)
	s.carry(rdb, n, size, n)
	took, limit := meter.Empty()["a call"], redistest.Paced(t, alone, most)
	t.Logf("with %d × 1 MiB there and back the largest CPU time of a call is %v", n, took)
	if took == 0 || took > limit {
		t.Errorf("a call kept Redis busy for %v, want at most %v", took, limit)
	}
}
