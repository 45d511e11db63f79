package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// A full Redis refuses new tasks with an error. Tasks that it has are fetched, settled, retried,
// given back, cancelled and timed out as usual, and workers keep their leases.
func TestAFullRedisDrainsUnderLoad(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	s := newStage(t, server.Addr, server.Addr)
	held := s.hold(700 * time.Millisecond)
	backlog := make([]queue.Task, harness.Times(500, 1000, 20000))
	for i := range backlog {
		backlog[i] = queue.Task{Kind: "quick", Queue: "default", Payload: fmt.Append(nil, i), Timeout: time.Minute, MaxRetries: 1}
		if i%10 == 0 {
			backlog[i].Kind = "moody"
		}
	}
	waiting := s.Enqueue(backlog...)
	late := s.Enqueue(queue.Task{Kind: "late", Queue: "nobody", Timeout: time.Second}, queue.Task{Kind: "late", Queue: "nobody", QueueTimeout: time.Second})
	unwanted := s.Enqueue(queue.Task{Kind: "unwanted", Queue: "nobody"})
	long := s.Enqueue(queue.Task{Kind: "long", Queue: "long"})
	release := s.longWorker()

	limit := s.fill()
	lease := s.lease(long[0])
	var refused atomic.Int64
	var stops []func()
	for range 4 {
		stops = append(stops, s.Run(func(ctx context.Context) error { return s.knock(ctx, &refused) }))
	}
	await.Until(t, "enqueues are refused", func() bool { return refused.Load() > 20 })
	stopFleet := s.moodyFleet()
	s.callOff(s.Q, unwanted[0])
	for _, id := range append(late, waiting[len(waiting)-20:]...) {
		s.Ended(id)
	}
	await.Until(t, "the lease of the long task is renewed while Redis is full", func() bool { return s.lease(long[0]) > lease })
	before := refused.Load()
	await.Until(t, "enqueues are still refused", func() bool { return refused.Load() > before+20 })
	close(release)
	s.Ended(long[0])
	s.Ended(held)
	if now := s.Redis.ConfigGet(s.Context(), "maxmemory").Val()["maxmemory"]; now != limit {
		t.Errorf("maxmemory is %s, want %s until the end", now, limit)
	}
	if err := s.Redis.ConfigSet(s.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	accepted := len(s.Ledger.Copy().Tasks)
	await.Until(t, "enqueues are accepted again", func() bool { return len(s.Ledger.Copy().Tasks) > accepted+20 })
	for _, stop := range stops {
		stop()
	}
	s.drained()
	stats := stopFleet()
	here := s.account(nothing)
	told := s.Ledger.Copy()
	for _, err := range told.Trouble {
		if !errors.Is(err, refusal.ErrFull) || !strings.Contains(err.Error(), "raise maxmemory or shorten retention") {
			s.Complain("a call failed: %v", err)
		}
	}
	if r := here.records[long[0]]; r.LeaseLosses != 0 || r.Epoch != 1 {
		t.Errorf("the long task lost its lease %d times and has %d claims, want 0 and 1", r.LeaseLosses, r.Epoch)
	}
	if r := here.records[held]; r.LeaseLosses != 1 || r.Status != queue.Completed {
		t.Errorf("the task of a dead worker is %s after %d lost leases, want COMPLETED after 1", r.Status, r.LeaseLosses)
	}
	t.Logf("%d tasks accepted, %d refused; the fleet: %+v", len(told.Tasks), len(told.Refused), stats)
}

// hold fetches a task for a worker that never sends another call. It returns the task's id.
func (s *stage) hold(lease time.Duration) string {
	s.Helper()
	id := s.Enqueue(queue.Task{Kind: "quick"})[0]
	ask := claim.Ask{N: 1, Seq: 1, Lease: lease, Quotas: []claim.Quota{{Queue: "default", N: 1}}}
	if trip, err := claim.Of(s.Q).Fetch(s.Context(), 0, "dead", ask); err != nil || len(trip.Claims) != 1 {
		s.Fatalf("Fetch = %+v, %v", trip, err)
	}
	return id
}

// longWorker runs a worker whose handler runs until release is closed.
func (s *stage) longWorker() (release chan struct{}) {
	release = make(chan struct{})
	began := make(chan struct{}, 1)
	w := worker.New(s.Another(), worker.Config{Lease: time.Minute, Beat: 200 * time.Millisecond, Queues: map[string]int{"long": 1}})
	s.work(w, map[string]worker.Handler{"long": func(context.Context, []byte) ([]byte, error) {
		began <- struct{}{}
		<-release
		return nil, nil
	}})
	await.Receive(s.T, began, "the long task begins")
	return release
}

// lease returns when the lease of the worker of a task ends, in ms since 1970.
func (s *stage) lease(id string) float64 {
	s.Helper()
	r, err := s.Q.Get(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	at, err := s.Redis.ZScore(s.Context(), s.Q.Engine().Root(queuetest.Partition(s.T, id))+":workers", r.Worker).Result()
	if err != nil {
		s.Fatal(err)
	}
	return at
}

// fill sets maxmemory a little above the used memory, and returns it.
func (s *stage) fill() (limit string) {
	s.Helper()
	var used int64
	for line := range strings.Lines(s.Redis.Info(s.Context(), "memory").Val()) {
		fmt.Sscanf(line, "used_memory:%d", &used)
	}
	limit = fmt.Sprint(used + 200_000)
	if err := s.Redis.ConfigSet(s.Context(), "maxmemory", limit).Err(); err != nil || used == 0 {
		s.Fatalf("used_memory is %d, and CONFIG SET maxmemory = %v", used, err)
	}
	return limit
}

// knock enqueues tasks one by one, whether they are accepted or not, until ctx ends.
func (s *stage) knock(ctx context.Context, refused *atomic.Int64) error {
	q := s.Another()
	for ctx.Err() == nil {
		r, err := q.Enqueue(s.Context(), queue.Task{Kind: "quick", Payload: make([]byte, 1000)})
		if err == nil {
			s.Ledger.Acknowledge(r.ID)
		} else {
			s.Ledger.Refuse(r.ID)
			s.Ledger.Complain(err)
			refused.Add(1)
		}
		harness.Pass(2 * time.Millisecond) // sleeps: a load of some hundred a second
	}
	return nil
}

// moodyFleet runs a worker that gives a moody task back, then fails it, then completes it.
func (s *stage) moodyFleet() (stop func() worker.Stats) {
	w := worker.New(s.Another(), worker.Config{Concurrency: 20, Lease: 2 * time.Second})
	end := s.work(w, map[string]worker.Handler{
		"quick": func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil },
		"moody": func(ctx context.Context, _ []byte) ([]byte, error) {
			switch info := worker.Info(ctx); {
			case info.Epoch == 1:
				return nil, worker.Release(10 * time.Millisecond)
			case info.Retries == 0:
				return nil, errors.New("failed on purpose")
			}
			return nil, nil
		},
	})
	return func() worker.Stats { end(); return w.Stats() }
}
