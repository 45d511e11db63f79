package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 4} {
		for _, slots := range []int{1, 3, 20} {
			t.Run(fmt.Sprintf("%d slots are used and never more, %d partitions", slots, partitions), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, shared(t), partitions)
				w := worker.New(s.q, worker.Config{Concurrency: slots})
				var running, most atomic.Int64
				full := make(chan struct{})
				close1 := sync.OnceFunc(func() { close(full) })
				w.HandleRaw("count", raw(func(ctx context.Context) error {
					n := running.Add(1)
					defer running.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if n == int64(slots) {
						close1() // no handler continues before all slots are in use at once
					}
					select {
					case <-full:
					case <-time.After(await.Limit(t)):
						return errors.New("the slots were never all in use")
					}
					return nil
				}))
				tasks := make([]queue.Task, 40*partitions)
				for i := range tasks {
					tasks[i] = queue.Task{Kind: "count"}
				}
				ids := s.enqueueAll(tasks...)
				s.run(w)
				for _, id := range ids {
					if r := s.ended(id); r.Status != queue.Completed {
						t.Fatalf("%s: %s", r.Status, r.Error)
					}
				}
				if got := most.Load(); got != int64(slots) {
					t.Errorf("%d handlers ran at once, want %d", got, slots)
				}
			})
		}
	}
}

// The handlers of a busy partition free slots all the time. The other partitions must get their share,
// even if there is only one slot.
func TestNoPartitionStarves(t *testing.T) {
	for _, slots := range []int{1, 2, 16} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			t.Parallel()
			const partitions, each = 4, 400 // many, since the first runs show only which partition was asked first
			s := newStage(t, shared(t), partitions)
			w := worker.New(s.q, worker.Config{Concurrency: slots})
			var mu sync.Mutex
			ran := make([]int, partitions)
			done := make(chan struct{})
			w.HandleRaw("count", raw(func(ctx context.Context) error {
				p, _ := queue.PartitionOf(worker.Info(ctx).ID)
				mu.Lock()
				defer mu.Unlock()
				ran[p]++
				sum := 0
				for _, n := range ran {
					sum += n
				}
				if sum == each*partitions/2 {
					for p, n := range ran {
						if n < each/3 {
							t.Errorf("of the first %d runs, partition %d had %d, want %d at least: %v", sum, p, n, each/3, ran)
						}
					}
					close(done)
				}
				return nil
			}))
			var tasks []queue.Task
			for range each * partitions {
				tasks = append(tasks, queue.Task{Kind: "count"})
			}
			for i := range tasks {
				s.enqueue(tasks[i]) // one call for each task, so that the tasks are spread over the partitions
			}
			s.run(w)
			receive(t, done)
		})
	}
}

func TestNewWorkBesideAnEndlessBacklog(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 2)
	w := worker.New(s.q, worker.Config{Concurrency: 2})
	var stopped atomic.Bool
	feed := func() { s.enqueueIn(0, "default", "feed") }
	w.HandleRaw("feed", raw(func(ctx context.Context) error {
		if !stopped.Load() {
			feed() // one more task, so that partition 0 is never empty
		}
		return nil
	}))
	quick := make(chan struct{}, 1)
	w.HandleRaw("quick", raw(func(ctx context.Context) error { quick <- struct{}{}; return nil }))
	for range 50 {
		feed()
	}
	stop := s.run(w)
	for range 10 {
		s.enqueueIn(1, "default", "quick")
		receive(t, quick)
	}
	stopped.Store(true)
	stop()
}

// enqueueIn enqueues a task in a partition. It finds an idempotency key that belongs to the partition.
func (s *stage) enqueueIn(partition int, line, kind string) {
	key := ""
	for at := -1; at != partition; at = int(crc32.ChecksumIEEE([]byte(key)) % uint32(s.q.Partitions())) {
		key = rand.Text()
	}
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: kind, Queue: line, IdempotencyKey: key})
	if err != nil {
		s.Error(err)
	} else if p, _ := queue.PartitionOf(r.ID); p != partition {
		s.Errorf("the task is in partition %d, want %d", p, partition)
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Concurrency: 1, Queues: map[string]int{"high": 3, "low": 1}})
	order := make(chan string, 800)
	w.HandleRaw("note", raw(func(ctx context.Context) error { order <- worker.Info(ctx).Queue; return nil }))
	var tasks []queue.Task
	for range 400 {
		tasks = append(tasks, queue.Task{Kind: "note", Queue: "low"}, queue.Task{Kind: "note", Queue: "high"})
	}
	s.enqueueAll(tasks...)
	s.run(w)
	high := 0
	for range 400 {
		if receive(t, order) == "high" {
			high++
		}
	}
	if high < 250 || high > 350 {
		t.Errorf("%d of the first 400 tasks were from the queue of weight 3, want about 300", high)
	}
	for range 400 {
		receive(t, order) // all other tasks run too
	}
}

func TestStrictOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Concurrency: 1, Strict: []string{"high", "low"}})
	order := make(chan string, 100)
	w.HandleRaw("note", raw(func(ctx context.Context) error { order <- worker.Info(ctx).Queue; return nil }))
	var tasks []queue.Task
	for range 50 {
		tasks = append(tasks, queue.Task{Kind: "note", Queue: "low"}, queue.Task{Kind: "note", Queue: "high"})
	}
	s.enqueueAll(tasks...)
	s.run(w)
	for i := range 100 {
		if got, want := receive(t, order), map[bool]string{true: "high", false: "low"}[i < 50]; got != want {
			t.Fatalf("task %d was from queue %s, want %s", i, got, want)
		}
	}
}

// Redis gives at most 500 tasks a call. A worker with more slots makes several calls and fills them.
func TestAWorkerFillsMoreSlotsThanACallGivesTasks(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	const slots = 1200
	w := worker.New(s.q, worker.Config{Concurrency: slots})
	all, running := make(chan struct{}), atomic.Int64{}
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		if running.Add(1) == slots {
			close(all) // no handler returns before this
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	ids := s.enqueueAll(many(slots, queue.Task{Kind: "k", Timeout: time.Minute})...)
	reply, err := claim.Of(s.q).Fetch(s.ctx, 0, "another", claim.Ask{N: 10_000, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 10_000}}})
	if err != nil || len(reply.Claims) != 500 || !reply.More() {
		t.Fatalf("a fetch of 10,000 tasks gets %d, %v, more: %v; want 500 of %d, more: true", len(reply.Claims), err, reply.More(), slots)
	}
	var back []queue.Outcome
	for _, c := range reply.Claims {
		back = append(back, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Release})
	}
	if _, err := claim.Of(s.q).Settle(s.ctx, 0, "another", queue.NewCall(), back, claim.Ask{}); err != nil {
		t.Fatal(err)
	}
	s.run(w)
	for _, id := range ids {
		if r := s.ended(id); r.Status != queue.Completed {
			t.Fatalf("%s is %s: %s", id, r.Status, r.Error)
		}
	}
}
