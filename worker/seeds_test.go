package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// These tests show each sentence of seed 001, a per-task timeout by a child context. limit_test.go has
// more about S1.6 and S1.9.

// hang returns a handler that waits for the end of its context, and sends the cause to causes.
func hang(causes chan<- error) worker.Handler {
	return raw(func(ctx context.Context) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
}

func TestSeedS1(t *testing.T) {
	t.Parallel()
	t.Run("S1.1 a hung task does not hold its slot for the life of the process", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{Concurrency: 1, TaskTimeout: 50 * time.Millisecond})
		causes := make(chan error, 1)
		w.HandleRaw("hang", hang(causes))
		w.HandleRaw("quick", raw(func(context.Context) error { return nil }))
		ids := s.enqueueAll(queue.Task{Kind: "hang"}, queue.Task{Kind: "quick"})
		s.run(w)
		if r := s.ended(ids[1]); r.Status != queue.Completed {
			t.Fatalf("the task behind the hung one is %s", r.Status)
		}
		r := s.ended(ids[0])
		if r.Status != queue.Failed || !r.TimedOut || r.TimeoutType != "attempt" || r.Error != "Task exceeded deadline" {
			t.Fatalf("the hung task is %s, timed out %v (%s): %s", r.Status, r.TimedOut, r.TimeoutType, r.Error)
		}
		if cause := receive(t, causes); cause != worker.ErrTaskTimeout || !errors.Is(cause, context.DeadlineExceeded) {
			t.Fatalf("the cause of the context is %v, want ErrTaskTimeout", cause)
		}
	})

	t.Run("S1.2 S1.6 without a configured limit the context has no deadline", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{})
		bounded := make(chan bool, 1)
		w.HandleRaw("poll", raw(func(ctx context.Context) error {
			_, ok := ctx.Deadline()
			bounded <- ok || ctx.Err() != nil
			return nil
		}))
		s.enqueue(queue.Task{Kind: "poll"})
		s.run(w)
		if receive(t, bounded) {
			t.Fatal("the context has a deadline, or has ended")
		}
	})

	t.Run("S1.3 Config has a TaskTimeout, which is a time.Duration", func(t *testing.T) {
		var _ time.Duration = worker.Config{}.TaskTimeout
	})

	t.Run("S1.5 a handler sees its deadline", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: 5 * time.Second})
		left := make(chan time.Duration, 1)
		w.HandleRaw("look", raw(func(ctx context.Context) error {
			at, _ := ctx.Deadline()
			left <- time.Until(at)
			return nil
		}))
		s.enqueue(queue.Task{Kind: "look"})
		s.run(w)
		if d := receive(t, left); d > 5*time.Second || d < 4*time.Second {
			t.Fatalf("%v are left of 5s, want 4s at least", d)
		}
	})

	t.Run("S1.5 the sooner of the task's deadline and the worker's limit counts", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: time.Hour})
		causes := make(chan error, 2)
		w.HandleRaw("hang", hang(causes))
		id := s.enqueue(queue.Task{Kind: "hang", Timeout: 3 * time.Second})
		s.run(w)
		if cause := receive(t, causes); cause != worker.ErrDeadline && cause != worker.ErrTimeout {
			t.Fatalf("the cause of the context is %v, want the task's deadline", cause)
		}
		if r := s.ended(id); !r.TimedOut || r.TimeoutType != "execution" {
			t.Fatalf("the task ended as %s of type %q", r.Status, r.TimeoutType)
		}
		id = s.enqueue(queue.Task{Kind: "hang", AttemptTimeout: 200 * time.Millisecond, MaxRetries: 1})
		if cause := receive(t, causes); cause != worker.ErrAttemptTimeout && cause != worker.ErrTimeout {
			t.Fatalf("the cause of the context is %v, want the attempt's limit", cause)
		}
		if r := s.ended(id); !r.TimedOut || r.TimeoutType != "attempt" {
			t.Fatalf("the task ended as %s of type %q", r.Status, r.TimeoutType)
		}
	})

	t.Run("S1.7 the context is the handler's only one", func(t *testing.T) {
		var _ worker.Handler = func(context.Context, []byte) ([]byte, error) { return nil, nil }
	})

	t.Run("S1.8 S1.11 a handler that ignores its context keeps its slot and loses its task", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{Concurrency: 1})
		release := make(chan struct{})
		began := make(chan string, 2)
		w.HandleRaw("deaf", raw(func(ctx context.Context) error {
			began <- worker.Info(ctx).ID
			<-release
			return nil
		}))
		first := s.enqueue(queue.Task{Kind: "deaf", Timeout: 3 * time.Second})
		s.run(w)
		receive(t, began)
		second := s.enqueue(queue.Task{Kind: "deaf"})
		if r := s.ended(first); r.Status != queue.Failed || !r.TimedOut {
			t.Fatalf("the task is %s while its handler sleeps", r.Status)
		}
		await.Until(t, "the handler is counted as stray", func() bool { return w.Stats().Stray == 1 })
		if n := w.Stats().Running; n != 1 || s.record(second).Status != queue.Pending {
			t.Fatalf("%d handlers run, the second task is %s", n, s.record(second).Status)
		}
		close(release)
		if got := receive(t, began); got != second {
			t.Fatalf("the slot went to %s", got)
		}
		if r := s.ended(second); r.Status != queue.Completed {
			t.Fatalf("the second task is %s", r.Status)
		}
		if r := s.record(first); r.Status != queue.Failed {
			t.Fatalf("the late completion changed the first task to %s", r.Status)
		}
	})

	t.Run("S1.9 the context ends as soon as the handler has returned, with or without an error", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: time.Hour})
		contexts := make(chan context.Context, 2)
		w.HandleRaw("good", raw(func(ctx context.Context) error { contexts <- ctx; return nil }))
		w.HandleRaw("bad", raw(func(ctx context.Context) error { contexts <- ctx; return errors.New("no") }))
		s.enqueueAll(queue.Task{Kind: "good"}, queue.Task{Kind: "bad"})
		s.run(w)
		for range 2 {
			receive(t, receive(t, contexts).Done())
		}
	})

	t.Run("S1.10 a call that gets the handler's context has the same limit", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: 100 * time.Millisecond})
		errs := make(chan error, 1)
		w.HandleRaw("downstream", raw(func(ctx context.Context) error {
			patient, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := s.q.Result(patient, worker.Info(ctx).ID) // waits for its own end
			errs <- err
			return err
		}))
		s.enqueue(queue.Task{Kind: "downstream"})
		s.run(w)
		if err := receive(t, errs); !errors.Is(err, worker.ErrTaskTimeout) {
			t.Fatalf("the call with the handler's context returned %v, want ErrTaskTimeout", err)
		}
	})

	t.Run("S1.12 a task timeout of 5s and a shutdown timeout of 30s are independent", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: 5 * time.Second, ShutdownTimeout: 30 * time.Second})
		causes, began := make(chan error, 1), make(chan struct{}, 1)
		hung := hang(causes)
		w.HandleRaw("hang", func(ctx context.Context, p []byte) ([]byte, error) {
			began <- struct{}{}
			return hung(ctx, p)
		})
		id := s.enqueue(queue.Task{Kind: "hang"})
		stop := s.run(w)
		receive(t, began)
		start := time.Now()
		stop()
		if took := time.Since(start); took < 4*time.Second {
			t.Fatalf("the drain took %v, want about 5s", took)
		}
		if cause := receive(t, causes); cause != worker.ErrTaskTimeout {
			t.Fatalf("the cause of the handler's context is %v", cause)
		}
		if r := s.record(id); !r.TimedOut || r.TimeoutType != "attempt" {
			t.Fatalf("the task is %s, reason %q", r.Status, r.Reason)
		}
	})

	for _, limit := range []time.Duration{0, time.Hour} {
		t.Run("S1.13 shutdown ends the handlers, and is not a timeout, TaskTimeout="+limit.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, worker.Config{TaskTimeout: limit, ShutdownTimeout: 20 * time.Millisecond})
			causes, began := make(chan error, 1), make(chan struct{}, 1)
			hung := hang(causes)
			w.HandleRaw("hang", func(ctx context.Context, p []byte) ([]byte, error) {
				began <- struct{}{}
				return hung(ctx, p)
			})
			id := s.enqueue(queue.Task{Kind: "hang"})
			stop := s.run(w)
			receive(t, began)
			stop()
			if cause := receive(t, causes); cause != worker.ErrShutdown {
				t.Fatalf("the cause of the handler's context is %v", cause)
			}
			if r := s.record(id); r.Status != queue.Pending || r.Retries != 0 || r.LeaseLosses != 0 {
				t.Fatalf("the task is %s after %d retries and %d lost leases, want PENDING after 0 and 0", r.Status, r.Retries, r.LeaseLosses)
			}
		})
	}

	t.Run("S1.14 a negative TaskTimeout is an error at the start", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, shared(t), 1)
		s.refuses(worker.New(s.q, worker.Config{TaskTimeout: -time.Second}), "TaskTimeout")
	})
}

// Not parallel: the test sets variables of the process.
func TestSeedS1Environment(t *testing.T) {
	t.Run("S1.4 WORKER_TASK_TIMEOUT is the limit if the config has none", func(t *testing.T) {
		t.Setenv("WORKER_TASK_TIMEOUT", "50ms")
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{})
		causes := make(chan error, 1)
		w.HandleRaw("hang", hang(causes))
		s.enqueue(queue.Task{Kind: "hang"})
		s.run(w)
		if cause := receive(t, causes); cause != worker.ErrTaskTimeout {
			t.Fatalf("the cause of the handler's context is %v", cause)
		}
	})

	t.Run("S1.4 the limit of the config has precedence", func(t *testing.T) {
		t.Setenv("WORKER_TASK_TIMEOUT", "1ms")
		s := newStage(t, shared(t), 1)
		w := worker.New(s.q, worker.Config{TaskTimeout: time.Hour})
		left := make(chan time.Duration, 1)
		w.HandleRaw("look", raw(func(ctx context.Context) error {
			at, _ := ctx.Deadline()
			left <- time.Until(at)
			return nil
		}))
		s.enqueue(queue.Task{Kind: "look"})
		s.run(w)
		if d := receive(t, left); d < 59*time.Minute {
			t.Fatalf("%v are left of 1h, want 59m at least", d)
		}
	})

	t.Run("S1.4 S1.14 a bad or negative value is an error at the start", func(t *testing.T) {
		for _, bad := range []string{"soon", "-5s", "5"} {
			t.Setenv("WORKER_TASK_TIMEOUT", bad)
			s := newStage(t, shared(t), 1)
			s.refuses(worker.New(s.q, worker.Config{}), "WORKER_TASK_TIMEOUT")
		}
	})
}

// refuses checks that Run of a worker returns an error with why, and has started nothing.
func (s *stage) refuses(w *worker.Worker, why string) {
	s.Helper()
	var called atomic.Bool
	w.HandleRaw("any", raw(func(context.Context) error { called.Store(true); return nil }))
	s.enqueue(queue.Task{Kind: "any"})
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err := w.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), why) {
		s.Errorf("Run = %v, want an error about %s", err, why)
	}
	stats, err := s.q.Stats(s.ctx)
	if err != nil || stats.Workers != 0 || called.Load() {
		s.Errorf("something was started: %d workers in Redis, handler called %v, %v", stats.Workers, called.Load(), err)
	}
}
