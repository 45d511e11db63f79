package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// blocked returns how many clients of the server are in a blocking command.
func (s *stage) blocked() (n int) {
	for line := range strings.Lines(s.rdb.Info(s.ctx, "clients").Val()) {
		fmt.Sscanf(line, "blocked_clients:%d", &n)
	}
	return n
}

// Workers of one process that share a client share the connections that they wait on.
func TestManyWorkersOfOneProcess(t *testing.T) {
	const partitions = 4
	workers, tasks := harness.Times(20, 100, 1000), 2000
	server := redistest.Start(t, "--appendonly", "yes")
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
	s.ended(s.enqueue(queue.Task{Kind: "noop"}))

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
	w := worker.New(s.q, worker.Config{Lease: time.Minute, Beat: time.Second})
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	s.run(w)
	await.Until(t, "the worker has a lease", func() bool { return s.rdb.ZCard(s.ctx, s.q.Root(0)+":workers").Val() == 1 })
	for range 3 {
		end := s.leaseEnd()
		await.Until(t, "the lease is renewed", func() bool { return s.leaseEnd() > end })
		if left := end - float64(s.rdb.Time(s.ctx).Val().UnixMilli()); left < 30_000 {
			t.Errorf("a lease of a minute had %.0f ms left when it was renewed, want about 55,000", left)
		}
	}
}
