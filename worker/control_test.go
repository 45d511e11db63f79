package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func many(n int, task queue.Task) []queue.Task { return slices.Repeat([]queue.Task{task}, n) }

func TestPausedQueueGivesNothing(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			t.Parallel()
			// The test counts the scripts of the server, so it has a server of its own.
			rdb := redistest.Start(t).Client(t)
			s := newStage(t, rdb, partitions)
			w := worker.New(s.q, worker.Config{Concurrency: 4})
			ran := make(chan string, 100)
			w.HandleRaw("k", raw(func(ctx context.Context) error { ran <- worker.Info(ctx).ID; return nil }))
			if c, err := s.q.Pause(s.ctx, "default"); err != nil || c.Known {
				t.Fatalf("Pause of a new queue = %+v, %v; want no error, and Known false", c, err)
			}
			s.run(w)
			ids := s.enqueueAll(many(12, queue.Task{Kind: "k"})...)
			late := s.enqueue(queue.Task{Kind: "k", Timeout: 100 * time.Millisecond})
			if r := s.ended(late); !r.TimedOut {
				t.Errorf("a task that waits in a paused queue ends as %s %s, want a timeout", r.Status, r.Reason)
			}

			before, start := scripts(t, rdb), time.Now()
			time.Sleep(1500 * time.Millisecond) // sleeps: nothing may happen in this time
			if rate := float64(scripts(t, rdb)-before) / time.Since(start).Seconds() / float64(partitions); rate > 5.4 {
				t.Errorf("%.1f scripts a second and partition ran while the queue was paused, want at most 5.4: the worker polls", rate)
			}
			select {
			case id := <-ran:
				t.Fatalf("%s ran while its queue was paused", id)
			default:
			}
			if c, err := s.q.Resume(s.ctx, "default"); err != nil || !c.Known || c.Ready != 12 {
				t.Fatalf("Resume = %+v, %v; want 12 ready", c, err)
			}
			for range ids {
				receive(t, ran)
			}
		})
	}
}

// scripts returns how many scripts a server has run.
func scripts(t *testing.T, rdb *redis.Client) (sum int) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_fcall:calls="); ok {
			fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &sum)
		}
	}
	return sum
}

func TestMaxRunningHoldsOverTheFleet(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), partitions)
			if _, err := s.q.LimitRunning(s.ctx, "default", 3); err != nil {
				t.Fatal(err)
			}
			var running, most atomic.Int64
			handle := raw(func(ctx context.Context) error {
				n := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(5 * time.Millisecond) // sleeps: this is the work; other handlers could start meanwhile
				return nil
			})
			for range 2 {
				w := worker.New(s.q, worker.Config{Concurrency: 10})
				w.HandleRaw("k", handle)
				s.run(w)
			}
			for _, id := range s.enqueueAll(many(60, queue.Task{Kind: "k"})...) {
				if r := s.ended(id); r.Status != queue.Completed {
					t.Fatalf("%s %s", r.Status, r.Error)
				}
			}
			if most.Load() > 3 {
				t.Errorf("%d handlers ran at once, want at most 3", most.Load())
			}
			if partitions == 1 && most.Load() < 3 {
				t.Errorf("only %d handlers ran at once, want 3", most.Load())
			}
		})
	}
}

func TestRateHolds(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	const every = 20 * time.Millisecond
	if _, err := s.q.LimitRate(s.ctx, "default", queue.Rate{N: 1, Per: every, Burst: 5}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := worker.New(s.q, worker.Config{Concurrency: 10})
		w.HandleRaw("k", raw(func(context.Context) error { return nil }))
		s.run(w)
	}
	var started []time.Time
	for _, id := range s.enqueueAll(many(40, queue.Task{Kind: "k"})...) {
		started = append(started, s.ended(id).StartedAt)
	}
	slices.SortFunc(started, time.Time.Compare)
	for i := range started {
		for j := i + 1; j < len(started); j++ {
			// In any span: 5 tasks at once, and one more every 20 ms.
			span := started[j].Sub(started[i])
			if most := 5 + int((span+time.Millisecond)/every) + 1; j-i+1 > most {
				t.Fatalf("%d tasks started within %v, want at most %d", j-i+1, span, most)
			}
		}
	}
}
