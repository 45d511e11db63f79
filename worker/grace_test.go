package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A cancelled handler has its task's grace to clean up: it keeps its claim until it
// returns, over several heartbeats, and whatever it returns the task is CANCELLED.
func TestCancelledHandlerMayCleanUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim string
		err   error
	}{{"and succeeds", nil}, {"and fails", errors.New("boom")}, {"and asks for a retry", worker.RetryAfter(0, errors.New("boom"))},
		{"and gives back", worker.Release(0)}} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, worker.Config{Lease: time.Second, Beat: 20 * time.Millisecond})
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
				t.Fatalf("Cancel = %+v, %v; want it done, running, with an end of its grace", answer, err)
			}
			if cause := receive(t, cancelled); !errors.Is(cause, worker.ErrCancelled) {
				t.Errorf("the handler's context ended for %v", cause)
			}
			beats, newest := 0, 0.0
			await.Until(t, "five heartbeats pass", func() bool { // each moves the end of the lease
				if end := s.leaseEnd(); end != newest {
					beats, newest = beats+1, end
				}
				return beats > 5
			})
			if r := s.record(id); r.Status != queue.Running || r.CancelAt.IsZero() {
				t.Fatalf("in its grace it is %s %s, want RUNNING", r.Status, r.Error)
			}
			close(clean)
			if r := s.ended(id); r.Status != queue.Cancelled || r.Error != "enough" || r.Retries != 0 || !r.CompletedAt.Before(answer.GraceEnds) {
				t.Errorf("it ended as %s %q at %v, want CANCELLED as soon as the handler returned", r.Status, r.Error, r.CompletedAt)
			}
			if got := w.Stats().Refused; got != 0 {
				t.Errorf("%d outcomes were refused", got)
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
		t.Errorf("it ended as %s at %v, want CANCELLED at %v", r.Status, r.CompletedAt, answer.GraceEnds)
	}
	close(leave)
}
