package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Fetches end late tasks one batch after the other, without a pause, although no handler runs and no
// reaper helps.
func TestLateTasksHoldUpNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	const late = 10_000
	makeLate := func() {
		ids := s.enqueueAll(many(late, queue.Task{Kind: "noop", Timeout: time.Millisecond})...)
		await.Until(t, "all of them are late", func() bool { return s.record(ids[late-1]).Overdue })
	}
	makeLate()
	id := s.enqueue(queue.Task{Kind: "noop"})
	w := worker.New(s.q, worker.Config{Concurrency: 1, NoReaper: true})
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	stop := s.run(w)
	r := s.ended(id)
	took := r.CompletedAt.Sub(r.CreatedAt)
	stop()
	makeLate()
	start := time.Now()
	for seq := int64(1); ; seq++ { // the same by hand, which a busy machine makes as slow
		reply, err := s.q.Attempts().Fetch(s.ctx, 0, "hand", queue.Ask{N: 1, Seq: seq, Lease: time.Minute, Quotas: []queue.Quota{{Queue: "default", N: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Ended == 0 {
			break
		}
	}
	byHand := time.Since(start)
	t.Logf("%d late tasks delayed a task with time left by %v; to end as many by hand took %v", late, took, byHand)
	// About 0.5 s. With a pause for every ten replies without a task it took 4.6 s.
	if limit := time.Second + 4*byHand; r.Status != queue.Completed || took > limit {
		t.Errorf("the task with time left is %s after %v, want COMPLETED after %v at most", r.Status, took, limit)
	}
}

// In a large fleet an idle worker waits several seconds for work. It stops at once even so.
func TestAnIdleWorkerStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t).Client(t), 2)
	s.manyWorkers()
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	stop := s.run(w)
	await.Until(t, "the worker waits", func() bool { return s.blocked() == 2 })
	start := time.Now()
	stop()
	if took := time.Since(start); took > 2*time.Second { // a wait that is not ended takes 7 s and more
		t.Errorf("the worker stopped after %v, want 2s at most", took)
	}
}

// manyWorkers adds leases of 200 workers to the namespace, so that each worker waits long for work.
func (s *stage) manyWorkers() {
	for p := range s.q.Partitions() {
		var leases []redis.Z
		for i := range 200 {
			leases = append(leases, redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: fmt.Sprint("other", i)})
		}
		if err := s.rdb.ZAdd(s.ctx, s.q.Root(p)+":workers", leases...).Err(); err != nil {
			s.Fatal(err)
		}
	}
}

// blocked returns how many clients of the server are in a blocking command.
func (s *stage) blocked() (n int) {
	for line := range strings.Lines(s.rdb.Info(s.ctx, "clients").Val()) {
		fmt.Sscanf(line, "blocked_clients:%d", &n)
	}
	return n
}

// A worker that stops while a wake token comes passes it on or does not take it.
func TestNoTokenIsLostWhenWorkersStop(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t).Client(t), 1)
	s.manyWorkers()
	var done atomic.Int64
	begin := func() (stop func()) {
		w := worker.New(s.q, worker.Config{NoReaper: true})
		w.HandleRaw("noop", raw(func(context.Context) error { done.Add(1); return nil }))
		return s.run(w)
	}
	start, rounds := time.Now(), stages.Times(10, 40, 1000)
	for i := range rounds {
		leaves, stays := begin(), begin()
		await.Until(t, "a worker waits", func() bool { return s.blocked() == 1 })
		var group sync.WaitGroup
		group.Go(leaves)
		stages.Pass(rand.N(2 * time.Millisecond)) // the task comes at a random instant of the stop
		s.enqueue(queue.Task{Kind: "noop"})
		await.Until(t, "a worker has run the task", func() bool { return done.Load() == int64(i+1) })
		group.Wait()
		stays()
	}
	// A lost token costs 7 to 10 s.
	t.Logf("%d rounds took %v", rounds, time.Since(start))
	if each := time.Since(start) / time.Duration(rounds); each > 500*time.Millisecond {
		t.Errorf("a round took %v, want 500ms at most", each)
	}
}

// Workers of one process that share a client share the connections that they wait on.
func TestManyWorkersOfOneProcess(t *testing.T) {
	const partitions = 4
	workers, tasks := stages.Times(20, 100, 1000), 2000
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true, PoolSize: 20})
	t.Cleanup(func() { client.Close() })
	s := newStage(t, client, partitions)
	var done atomic.Int64
	var stops []func()
	for range workers {
		w := worker.New(s.q, worker.Config{Concurrency: 1})
		w.HandleRaw("noop", raw(func(context.Context) error { done.Add(1); return nil }))
		stops = append(stops, s.run(w))
	}
	s.leases(workers)
	start := time.Now()
	for sent := 0; sent < tasks; sent += 100 {
		list := make([]queue.Task, 100)
		for i := range list {
			list[i] = queue.Task{Kind: "noop"}
		}
		s.enqueueAll(list...)
	}
	await.Until(t, "all are done", func() bool { return done.Load() == int64(tasks) })
	t.Logf("%d workers in %d partitions did %d tasks in %v", workers, partitions, tasks, time.Since(start))

	// Only one blocking call a partition.
	await.Until(t, "the workers wait on one connection a partition", func() bool { return s.blocked() == partitions })
	id := s.enqueue(queue.Task{Kind: "noop"})
	if r := s.ended(id); r.CompletedAt.Sub(r.CreatedAt) > time.Second+await.Stall {
		t.Errorf("a single task took %v, want 1s at most", r.CompletedAt.Sub(r.CreatedAt))
	}

	server.Kill()
	server.Restart(t)
	s.leases(workers)
	if r := s.ended(s.enqueue(queue.Task{Kind: "noop"})); r.Status != queue.Completed {
		t.Errorf("after a restart of Redis a task is %s", r.Status)
	}
	var group sync.WaitGroup
	for _, stop := range stops {
		group.Go(stop)
	}
	group.Wait()
	if n := s.logs.Count("level=ERROR"); n > 200 {
		t.Errorf("%d errors were logged, want 200 at most", n)
	}
}

// leases waits until this number of workers has a lease in every partition.
func (s *stage) leases(workers int) {
	s.Helper()
	for p := range s.q.Partitions() {
		await.Until(s.T, "all workers have a lease", func() bool {
			return s.rdb.ZCard(s.ctx, s.q.Root(p)+":workers").Val() == int64(workers)
		})
	}
}

// The fetches of a worker without claims renew its lease, so that the lease never expires.
func TestAnIdleWorkerKeepsItsLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Lease: 3 * time.Second, Beat: time.Second})
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	s.run(w)
	await.Until(t, "the worker has a lease", func() bool { return s.rdb.ZCard(s.ctx, s.q.Root(0)+":workers").Val() == 1 })
	for start := time.Now(); time.Since(start) < 5*time.Second; stages.Pass(20 * time.Millisecond) {
		now := float64(s.rdb.Time(s.ctx).Val().UnixMilli())
		if left := s.leaseEnd() - now; left < 300 {
			t.Fatalf("the lease had %.0f ms left, want 300 at least", left)
		}
	}
}
