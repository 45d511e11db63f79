package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A cancelled handler has the task's CancelGrace to clean up. It keeps its claim until it returns,
// over several heartbeats. The task is CANCELLED whatever the handler returns.
func TestACancelledHandlerCanCleanUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim string
		err   error
	}{{"and succeed", nil}, {"and fail", errors.New("boom")}, {"and request a retry", worker.RetryAfter(0, errors.New("boom"))},
		{"and give the task back", worker.Release(0)}} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, worker.Config{Lease: 10 * time.Second, Beat: 20 * time.Millisecond})
			started, cancelled, clean := make(chan bool), make(chan error), make(chan bool)
			w.HandleRaw("k", raw(func(ctx context.Context) error {
				started <- true
				<-ctx.Done()
				cancelled <- context.Cause(ctx)
				<-clean
				return c.err
			}))
			s.run(w)
			id := s.enqueue(queue.Task{Kind: "k", CancelGrace: time.Minute, MaxRetries: 5})
			receive(t, started)
			answer, err := s.q.Cancel(s.ctx, id, "enough")
			if err != nil || !answer.Done || answer.Status != queue.Running || answer.GraceEnds.IsZero() {
				t.Fatalf("Cancel = %+v, %v; want Done, RUNNING, and GraceEnds set", answer, err)
			}
			if cause := receive(t, cancelled); !errors.Is(cause, worker.ErrCancelled) {
				t.Errorf("the cause of the handler's context is %v, want ErrCancelled", cause)
			}
			beats, newest := 0, 0.0
			await.Until(t, "five heartbeats are sent", func() bool { // each moves the end of the lease
				if end := s.leaseEnd(); end != newest {
					beats, newest = beats+1, end
				}
				return beats > 5
			})
			if r := s.record(id); r.Status != queue.Running || r.CancelAt.IsZero() {
				t.Fatalf("in the grace the task is %s %s, want RUNNING", r.Status, r.Error)
			}
			close(clean)
			if r := s.ended(id); r.Status != queue.Cancelled || r.Error != "enough" || r.Retries != 0 || !r.CompletedAt.Before(answer.GraceEnds) {
				t.Errorf("the task ended as %s %q at %v, want CANCELLED as soon as the handler returned", r.Status, r.Error, r.CompletedAt)
			}
			if got := w.Stats().Refused; got != 0 {
				t.Errorf("%d outcomes were refused, want 0", got)
			}
		})
	}
}

func TestGraceEndsThoughTheHandlerDoesNot(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Millisecond})
	started, leave := make(chan bool), make(chan bool)
	w.HandleRaw("k", raw(func(context.Context) error { started <- true; <-leave; return nil }))
	s.run(w)
	id := s.enqueue(queue.Task{Kind: "k", CancelGrace: 100 * time.Millisecond})
	receive(t, started)
	answer, err := s.q.Cancel(s.ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	if r := s.ended(id); r.Status != queue.Cancelled || !r.CompletedAt.Equal(answer.GraceEnds) {
		t.Errorf("the task ended as %s at %v, want CANCELLED at %v", r.Status, r.CompletedAt, answer.GraceEnds)
	}
	close(leave)
}

// The context of a handler ends at the beginning of the task's TimeoutGrace, so that the handler can
// return before the limit.
func TestTimeoutGrace(t *testing.T) {
	t.Parallel()
	const span, grace = 8 * time.Second, 5 * time.Second
	for _, c := range []struct {
		claim  string
		task   queue.Task
		cause  error
		answer error
		status queue.Status
		kind   queue.TimeoutType
	}{
		{"a result in the grace before the deadline counts", queue.Task{Timeout: span}, worker.ErrDeadline, nil, queue.Completed, ""},
		{"an error is the timeout of the task, and not retried", queue.Task{Timeout: span, MaxRetries: 3}, worker.ErrDeadline, errors.New("stopped"), queue.Failed, queue.TimeoutExecution},
		{"a result in the grace before the attempt's limit counts", queue.Task{AttemptTimeout: span}, worker.ErrAttemptTimeout, nil, queue.Completed, ""},
		{"an error is the timeout of the attempt", queue.Task{AttemptTimeout: span}, worker.ErrAttemptTimeout, errors.New("stopped"), queue.Failed, queue.TimeoutAttempt},
		{"a grace is at most half of the time left", queue.Task{Timeout: span / 2}, worker.ErrDeadline, nil, queue.Completed, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, worker.Config{})
			causes := make(chan error, 1)
			w.HandleRaw("k", raw(func(ctx context.Context) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return c.answer
			}))
			s.run(w)
			c.task.Kind, c.task.TimeoutGrace = "k", grace
			id := s.enqueue(c.task)
			if cause := receive(t, causes); !errors.Is(cause, c.cause) {
				t.Errorf("the cause of the context is %v, want %v", cause, c.cause)
			}
			r := s.ended(id)
			if r.Status != c.status || r.TimeoutType != c.kind || r.TimedOut != (c.kind != "") || r.Retries != 0 {
				t.Errorf("the task is %s of type %q after %d retries, want %s of %q after 0", r.Status, r.TimeoutType, r.Retries, c.status, c.kind)
			}
			limit := r.StartedAt.Add(max(c.task.AttemptTimeout, c.task.Timeout))
			if left := limit.Sub(r.CompletedAt); left < 100*time.Millisecond {
				t.Errorf("the task ended %v before its limit, want 100ms at least: in the grace", left)
			}
		})
	}
}

// An attempt that fails in its grace is retried like an attempt that has reached its limit.
func TestAnAttemptStoppedInItsGraceIsRetried(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		if worker.Info(ctx).Attempt > 1 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	s.run(w)
	id := s.enqueue(queue.Task{Kind: "k", AttemptTimeout: 8 * time.Second, TimeoutGrace: 4 * time.Second, MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry})
	r := s.ended(id)
	if r.Status != queue.Completed || r.Retries != 1 || r.CompletedAt.Sub(r.CreatedAt) > 7*time.Second {
		t.Errorf("the task is %s after %d retries and %v, want COMPLETED after 1 and 7s at most", r.Status, r.Retries, r.CompletedAt.Sub(r.CreatedAt))
	}
}

// DeadlineNear returns a channel for a task with WarnAt only, and closes it at WarnAt.
func TestDeadlineNear(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	type warning struct {
		never bool
		at    time.Time
	}
	warnings := make(chan warning, 1)
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		near := worker.DeadlineNear(ctx)
		if near == nil {
			warnings <- warning{never: true}
			return nil
		}
		<-near
		warnings <- warning{at: time.Now()}
		return ctx.Err()
	}))
	s.run(w)
	s.enqueue(queue.Task{Kind: "k", Timeout: time.Minute})
	if !receive(t, warnings).never {
		t.Error("a task without WarnAt has a channel")
	}
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 20 * time.Second, WarnAt: 0.05})
	at := receive(t, warnings).at
	r := s.record(id)
	if want := r.CreatedAt.Add(time.Second); at.Before(want.Add(-50*time.Millisecond)) || at.After(want.Add(2*time.Second)) {
		t.Errorf("the channel was closed %v after the task was enqueued, want 1s", at.Sub(r.CreatedAt))
	}
	if worker.DeadlineNear(t.Context()) != nil {
		t.Error("DeadlineNear returns a channel outside of a handler")
	}
}
