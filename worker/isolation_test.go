package worker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// loseTwice makes tasks that two workers have died with.
func (s *stage) loseTwice(kind string, n int) (ids []string) {
	s.Helper()
	for range n {
		ids = append(ids, s.enqueue(queue.Task{Kind: kind}))
	}
	for range 2 {
		for p := range s.q.Partitions() {
			seq, n := int64(1), 0
			for more := true; more; seq++ {
				name := fmt.Sprint("died-", p, "-", seq, "-", queue.NewCall())
				r, err := claim.Of(s.q).Fetch(s.ctx, p, name, claim.Ask{N: 10_000, Seq: seq, Lease: time.Millisecond,
					Quotas: []claim.Quota{{Queue: "default", N: 10_000}}})
				if err != nil {
					s.Fatal(err)
				}
				n += len(r.Claims)
				more = r.More() || r.Waits
			}
		}
		await.Until(s, "the leases end", func() bool {
			for p := range s.q.Partitions() {
				if _, err := reaper.Sweep(s.ctx, s.q, p, "r", 250, time.Second); err != nil {
					s.Fatal(err)
				}
				if s.rdb.ZCard(s.ctx, s.q.Root(p)+":workers").Val() > 0 {
					return false
				}
			}
			return true
		})
	}
	for _, id := range ids {
		if r := s.record(id); r.LeaseLosses != 2 || r.Held != queue.HeldSuspect {
			s.Fatalf("%s lost %d leases, and is held as %q", id, r.LeaseLosses, r.Held)
		}
	}
	return ids
}

// A worker runs a task that may have killed two workers alone, although it is busy in other partitions, and runs others before and
// after it.
func TestASuspectRunsAlone(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), partitions)
			suspects := s.loseTwice("suspect", 3*partitions)
			var tasks []queue.Task
			for range 400 {
				tasks = append(tasks, queue.Task{Kind: "good"})
			}
			good := s.enqueueAll(tasks...)
			w := worker.New(s.q, worker.Config{Concurrency: 8, NoReaper: true})
			var running, beside atomic.Int64
			var mu sync.Mutex
			var order []string
			note := func(ctx context.Context) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, worker.Info(ctx).Kind)
			}
			w.HandleRaw("good", raw(func(ctx context.Context) error {
				running.Add(1)
				defer running.Add(-1)
				note(ctx)
				<-time.After(time.Millisecond) // sleeps: so that tasks run beside each other
				return nil
			}))
			w.HandleRaw("suspect", raw(func(ctx context.Context) error {
				if n := running.Add(1); n > 1 {
					beside.Add(1)
				}
				defer running.Add(-1)
				note(ctx)
				<-time.After(20 * time.Millisecond) // sleeps: so that others could begin beside it
				if running.Load() > 1 {
					beside.Add(1)
				}
				return nil
			}))
			s.run(w)
			for _, id := range append(suspects, good...) {
				if r := s.ended(id); r.Status != queue.Completed {
					t.Errorf("%s is %s: %s", id, r.Status, r.Error)
				}
			}
			if beside.Load() > 0 {
				t.Errorf("%d of %d suspects ran beside other tasks", beside.Load(), len(suspects))
			}
		})
	}
}
