package faults

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
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
			if took > bytes*3/2 {
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
	if took > bytes*3/2 {
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

// Large tasks at high concurrency delay other clients of the server little more than the same bytes do
// that bare commands carry.
func TestManyLargeTasksHoldNobodyUp(t *testing.T) {
	const most, size = 20 * time.Millisecond, 1 << 20
	n := stages.Times(50, 60, 500)
	server := redistest.Start(t)
	p99 := time.Hour
	for round := 0; round < 3 && p99 > most; round++ { // other programs can use the machine
		server.Client(t).FlushDB(t.Context())
		s := newStage(t, server.Addr, server.Addr)
		var took time.Duration
		pings := pinging(t, stages.Client(t, server.Addr), func() { took = s.carry(stages.Client(t, server.Addr), n, size, n) })
		bare := pinging(t, stages.Client(t, server.Addr), func() { carryBare(t, stages.Client(t, server.Addr), n, size) })
		p99 = pings[len(pings)*99/100] - bare[len(bare)*99/100]
		t.Logf("%d × 1 MiB there and back took %v; the 99th percentile of %d pings is %v, the longest %v; with bare commands %v and %v", n, took.Round(time.Millisecond),
			len(pings), pings[len(pings)*99/100], pings[len(pings)-1], bare[len(bare)*99/100], bare[len(bare)-1])
	}
	if p99 > most {
		t.Errorf("the 99th percentile of pings is %v longer than with bare commands, want at most %v", p99, most)
	}
}

// carryBare sends the bytes of as many payloads and results as carry does, from one client: each
// there and back, twice.
func carryBare(t *testing.T, rdb *redis.Client, n, size int) {
	var group sync.WaitGroup
	value := bytes.Repeat([]byte("b"), size)
	for i := range n {
		group.Go(func() {
			for _, key := range []string{"payload", "result"} {
				key += strconv.Itoa(i)
				if err := rdb.Set(t.Context(), key, value, 0).Err(); err != nil {
					t.Error(err)
				}
				if got, err := rdb.Get(t.Context(), key).Bytes(); len(got) != size {
					t.Errorf("GET = %d bytes, %v", len(got), err)
				}
			}
		})
	}
	group.Wait()
}

// pinging pings a server while a function runs, and returns the times of the replies, the shortest
// first.
func pinging(t *testing.T, rdb *redis.Client, while func()) (took []time.Duration) {
	rdb.Ping(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			rdb.Ping(context.Background())
			took = append(took, time.Since(began))
			stages.Pass(time.Millisecond) // sleeps: between two pings
		}
	})
	while()
	cancel()
	group.Wait()
	slices.Sort(took)
	return took
}
