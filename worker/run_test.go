package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A task that no worker can run is held. Its time in line continues, and that has a limit.
func TestATaskThatNobodyCanRunIsOutOfTimeInLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("known", raw(func(context.Context) error { return nil }))
	s.run(w)
	id := s.enqueue(queue.Task{Kind: "strange", QueueTimeout: 1500 * time.Millisecond, Timeout: time.Hour, MaxRetries: 3})
	r := s.ended(id)
	if line := r.CompletedAt.Sub(r.CreatedAt); r.TimeoutType != "queue" || line < 1500*time.Millisecond || line > 1600*time.Millisecond {
		t.Errorf("the task is %s, %s, after %v, want a timeout in line after 1.5s", r.Status, r.TimeoutType, line)
	}
	if w.Stats().Released != 1 {
		t.Errorf("it was given back %d times, want once, since it is held then", w.Stats().Released)
	}
}

func TestUnknownKind(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("known", raw(func(context.Context) error { return nil }))
	stop := s.run(w)
	id := s.enqueue(queue.Task{Kind: "strange"})
	await.Until(t, "the task is held", func() bool { return s.record(id).Held == queue.HeldUnhandled })
	if n := s.logs.Count("kind has no handler"); n != 1 {
		t.Errorf("%d warnings were logged, want 1 a minute", n)
	}
	if r := s.record(id); r.Status != queue.Pending || r.Retries != 0 || w.Stats().Released != 1 {
		t.Errorf("the task is %s after %d retries, and was given back %d times", r.Status, r.Retries, w.Stats().Released)
	}
	await.Until(t, "its explanation says why it is held", func() bool {
		e, err := inspect.Explain(s.ctx, s.q, id)
		return err == nil && e.Why == inspect.WhyHeld && e.ReleaseReason == "no handler for its kind" &&
			slices.ContainsFunc(e.Warnings, func(w inspect.Warning) bool { return w.Word == inspect.WarnNoHandler })
	})
	stop()
	other := worker.New(s.q, worker.Config{})
	other.HandleRaw("strange", raw(func(context.Context) error { return nil }))
	s.run(other)
	if r := s.ended(id); r.Status != queue.Completed {
		t.Errorf("in a worker with a handler the task ends as %s", r.Status)
	}
}

func TestEveryTaskRunsOnce(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d partitions, three workers", partitions), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), partitions)
			const n = 3000
			var mu sync.Mutex
			runs := map[string]int{}
			tasks := make([]queue.Task, n)
			for i := range tasks {
				tasks[i] = queue.Task{Kind: "noop", Timeout: time.Hour}
			}
			ids := s.enqueueAll(tasks...)
			var workers []*worker.Worker
			for range 3 {
				w := worker.New(s.q, worker.Config{Concurrency: 20})
				w.HandleRaw("noop", raw(func(ctx context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					runs[worker.Info(ctx).ID]++
					return nil
				}))
				workers = append(workers, w)
				s.run(w)
			}
			await.Until(t, "all are completed", func() bool {
				var sum int64
				for _, w := range workers {
					sum += w.Stats().Completed
				}
				return sum == n
			})
			for _, id := range ids {
				if runs[id] != 1 {
					t.Fatalf("task %s ran %d times", id, runs[id])
				}
			}
			for _, w := range workers {
				// With several partitions a worker takes slots away from a call that hangs, and gives back what the call then brings.
				if got := w.Stats(); got.Refused+got.Dropped+got.Failed != 0 || got.Released != 0 && partitions == 1 {
					t.Errorf("Stats = %+v", got)
				}
			}
		})
	}
}

// A heartbeat gives back the claims that its worker does not name. It must not give back claims whose
// reply is still under way.
func TestHeartbeatsDisturbNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Concurrency: 20, Beat: time.Millisecond})
	const n = 5000
	var tasks []queue.Task
	for range n {
		tasks = append(tasks, queue.Task{Kind: "noop"})
	}
	s.enqueueAll(tasks...)
	var runs, again atomic.Int64
	w.HandleRaw("noop", raw(func(ctx context.Context) error {
		runs.Add(1)
		if worker.Info(ctx).Epoch > 1 {
			again.Add(1)
		}
		return nil
	}))
	stop := s.run(w)
	await.Until(t, "all are completed", func() bool { return w.Stats().Completed == n })
	stop()
	if got := w.Stats(); runs.Load() != n || again.Load() != 0 || got.Refused+got.Released+got.Stopped != 0 {
		t.Errorf("%d runs for %d tasks, %d of them for a second claim; Stats = %+v", runs.Load(), n, again.Load(), got)
	}
}

// 12 results of 1 MiB are too large for one request.
func TestLargeResultsAreReportedInSeveralRequests(t *testing.T) {
	t.Parallel()
	var largest atomic.Int64
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		size := int64(0)
		for _, arg := range cmd.Args() {
			if b, ok := arg.([]byte); ok {
				size += int64(len(b))
			}
		}
		largest.Store(max(size, largest.Load()))
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	w := worker.New(s.q, worker.Config{Concurrency: 12})
	ready := sync.WaitGroup{}
	ready.Add(12)
	w.HandleRaw("large", func(context.Context, []byte) ([]byte, error) {
		ready.Done()
		ready.Wait()
		return bytes.Repeat([]byte("x"), s.q.MaxBytes()), nil
	})
	var tasks []queue.Task
	for range 12 {
		tasks = append(tasks, queue.Task{Kind: "large"})
	}
	ids := s.enqueueAll(tasks...)
	s.run(w)
	for _, id := range ids {
		if r := s.ended(id); r.Status != queue.Completed || len(r.Result) != s.q.MaxBytes() {
			t.Fatalf("a task is %s with a result of %d bytes: %s", r.Status, len(r.Result), r.Error)
		}
	}
	if n := largest.Load(); n > 4<<20 || n < 2<<20 {
		t.Errorf("the largest request had %d bytes, want 2 to 4 MiB", n)
	}
}
