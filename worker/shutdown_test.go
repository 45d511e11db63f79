package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Every success of a handler is reported before Run returns, whenever Run's context ends.
func TestDrainLosesNoSuccess(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 2)
	var tasks []queue.Task
	for range 4000 {
		tasks = append(tasks, queue.Task{Kind: "noop"})
	}
	ids := s.enqueueAll(tasks...)
	var succeeded, reported int64
	for range 20 {
		w := worker.New(s.q, worker.Config{Concurrency: 8, NoReaper: true})
		var runs atomic.Int64
		first := make(chan struct{}, 100)
		w.HandleRaw("noop", raw(func(context.Context) error {
			if runs.Add(1) <= 10 {
				first <- struct{}{}
			}
			return nil
		}))
		stop := s.run(w)
		for range 10 {
			receive(t, first)
		}
		stop()
		succeeded += runs.Load()
		reported += w.Stats().Completed
	}
	var completed int64
	for _, id := range ids {
		if r := s.record(id); r.Status == queue.Completed {
			completed++
		} else if r.Status != queue.Pending {
			t.Errorf("%s is %s", id, r.Status)
		}
	}
	if succeeded != completed || reported != completed {
		t.Errorf("%d handlers succeeded, %d were reported, %d tasks are completed", succeeded, reported, completed)
	}
}

func TestDrain(t *testing.T) {
	t.Run("running handlers can finish, and no task is taken", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{Concurrency: 2})
		began, release := make(chan struct{}, 3), make(chan struct{})
		w.HandleRaw("slow", func(ctx context.Context, _ []byte) ([]byte, error) {
			began <- struct{}{}
			<-release
			return []byte("done"), ctx.Err()
		})
		ids := s.enqueueAll(queue.Task{Kind: "slow"}, queue.Task{Kind: "slow"}, queue.Task{Kind: "slow"})
		ctx, cancel := context.WithCancel(s.ctx)
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		receive(t, began)
		receive(t, began)
		cancel()
		select {
		case <-ended:
			t.Fatal("Run returned while handlers ran")
		case <-time.After(200 * time.Millisecond):
		}
		close(release)
		if err := receive(t, ended); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids[:2] {
			if r := s.record(id); r.Status != queue.Completed || string(r.Result) != "done" {
				t.Errorf("a task that ran is %s with %q, want COMPLETED with done", r.Status, r.Result)
			}
		}
		if r := s.record(ids[2]); r.Status != queue.Pending || r.Epoch != 0 {
			t.Errorf("the task that had not started is %s after %d claims, want PENDING after 0", r.Status, r.Epoch)
		}
		s.noTrace()
	})

	t.Run("Run does not wait for a handler that ignores its context, and its task is given back", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{ShutdownTimeout: 20 * time.Millisecond, ShutdownGrace: 20 * time.Millisecond})
		began, release := make(chan struct{}, 1), make(chan struct{})
		returned := make(chan struct{})
		w.HandleRaw("deaf", raw(func(ctx context.Context) error {
			defer close(returned)
			began <- struct{}{}
			<-release
			return nil
		}))
		id := s.enqueue(queue.Task{Kind: "deaf"})
		stop := s.run(w)
		receive(t, began)
		stop()
		if r := s.record(id); r.Status != queue.Pending || r.Retries != 0 || r.LeaseLosses != 0 {
			t.Errorf("the task is %s after %d retries and %d lost leases, want PENDING after 0 and 0", r.Status, r.Retries, r.LeaseLosses)
		}
		if s.logs.Count("Run no longer waits for them") != 1 {
			t.Error("the handler was not logged")
		}
		s.noTrace()
		close(release) // the late return of the handler must do no harm
		receive(t, returned)
	})

	t.Run("a result in the shutdown grace is reported", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{ShutdownTimeout: 20 * time.Millisecond})
		began := make(chan struct{}, 1)
		w.HandleRaw("tidy", raw(func(ctx context.Context) error {
			began <- struct{}{}
			<-ctx.Done()
			return nil
		}))
		id := s.enqueue(queue.Task{Kind: "tidy"})
		stop := s.run(w)
		receive(t, began)
		stop()
		if r := s.record(id); r.Status != queue.Completed {
			t.Errorf("the task is %s, want COMPLETED", r.Status)
		}
	})
}

// Run returns an error if the client is closed while handlers finish: no outcome can be reported any
// more, so Run does not wait until its time for that is over.
func TestAClientThatIsClosedDuringShutdownEndsRunWithAnError(t *testing.T) {
	t.Parallel()
	const endless = time.Hour
	for _, test := range []struct {
		claim   string
		config  worker.Config
		awaited bool // the handler waits for the end of its context
	}{
		{"during ShutdownTimeout", worker.Config{ShutdownTimeout: endless}, false},
		{"during ShutdownGrace", worker.Config{ShutdownTimeout: time.Millisecond, ShutdownGrace: endless}, true},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			rdb := shared(t)
			q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: s.q.Namespace()})
			if err != nil {
				t.Fatal(err)
			}
			test.config.Lease, test.config.NoReaper = endless, true // only the report of the outcome meets the closed client
			w := worker.New(q, test.config)
			began, stopped, closed := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
			w.HandleRaw("slow", raw(func(ctx context.Context) error {
				began <- struct{}{}
				if test.awaited {
					<-ctx.Done()
				}
				close(stopped)
				<-closed
				return nil
			}))
			s.enqueue(queue.Task{Kind: "slow"})
			ctx, cancel := context.WithCancel(s.ctx)
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			receive(t, began)
			cancel()
			await.Until(t, "the worker drains", func() bool { return s.worker(w).State == queue.WorkerDraining })
			receive(t, stopped)
			rdb.Close()
			close(closed)
			if err := receive(t, ended); !errors.Is(err, refusal.ErrClosed) {
				t.Errorf("Run = %v, want ErrClosed", err)
			}
		})
	}
}

// noTrace checks that Redis holds nothing of a worker.
func (s *stage) noTrace() {
	s.Helper()
	keys, err := s.rdb.Keys(s.ctx, s.q.Root(0)+":*").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, key := range keys {
		if strings.Contains(key, ":claims:") || strings.Contains(key, ":worker:") {
			s.Errorf("%s is left", key)
		}
	}
	if n := s.rdb.ZCard(s.ctx, s.q.Root(0)+":workers").Val(); n != 0 {
		s.Errorf("%d workers are left", n)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	s := newStage(t, shared(t), 4)
	before := goleak.IgnoreCurrent()
	w := worker.New(s.q, worker.Config{TaskTimeout: time.Hour})
	var done atomic.Int64
	w.HandleRaw("noop", raw(func(context.Context) error { done.Add(1); return nil }))
	for range 200 {
		s.enqueue(queue.Task{Kind: "noop"})
	}
	stop := s.run(w)
	await.Until(t, "all are completed", func() bool { return w.Stats().Completed == 200 })
	stop()
	goleak.VerifyNone(t, before)
}
