package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestCancelReachesAHandlerWithoutAHeartbeat(t *testing.T) {
	t.Parallel()
	redistest.Both(t, testCancel)
}

func testCancel(t *testing.T, rdb redis.UniversalClient) {
	t.Parallel()
	s := newStage(t, rdb, 2)
	w := worker.New(s.q, worker.Config{Lease: time.Hour}) // no heartbeat during the test
	causes, began := make(chan error, 1), make(chan struct{}, 1)
	hung := hang(causes)
	w.HandleRaw("hang", func(ctx context.Context, p []byte) ([]byte, error) {
		began <- struct{}{}
		return hung(ctx, p)
	})
	s.run(w)
	for range 4 {
		id := s.enqueue(queue.Task{Kind: "hang", MaxRetries: 3})
		receive(t, began)
		if c, err := s.q.Cancel(s.ctx, id, "enough"); err != nil || !c.Done {
			t.Fatalf("Cancel = %+v, %v", c, err)
		}
		if cause := receive(t, causes); !errors.Is(cause, worker.ErrCancelled) {
			t.Fatalf("the cause of the handler's context is %v", cause)
		}
		if r := s.record(id); r.Status != queue.Cancelled {
			t.Errorf("the task is %s", r.Status)
		}
	}
	await.Until(t, "the slots are free again", func() bool { return w.Stats().Running == 0 })
	if got := w.Stats(); got.Stopped != 4 || got.Stray != 0 {
		t.Errorf("Stats = %+v", got)
	}
}

// A stop message can be lost with its connection. The worker then sends a heartbeat at once, and the
// reply names the attempt.
func TestAStopWhoseMessageWasLostComesWithAHeartbeat(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t).Client(t), 1)
	w := worker.New(s.q, worker.Config{Lease: time.Hour}) // no regular heartbeat during the test
	causes, began := make(chan error, 1), make(chan struct{}, 1)
	hung := hang(causes)
	w.HandleRaw("hang", func(ctx context.Context, p []byte) ([]byte, error) {
		began <- struct{}{}
		return hung(ctx, p)
	})
	s.run(w)
	for range 5 {
		id := s.enqueue(queue.Task{Kind: "hang"})
		receive(t, began)
		if err := s.rdb.Do(s.ctx, "client", "kill", "type", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.q.Cancel(s.ctx, id, "enough"); err != nil {
			t.Fatal(err)
		}
		if cause := receive(t, causes); !errors.Is(cause, worker.ErrCancelled) {
			t.Fatalf("the cause of the handler's context is %v", cause)
		}
	}
}

// In the millisecond of its deadline a task is still alive. A handler that returns when its context
// ends must not report its error so early that the task fails with that error.
func TestAHandlerThatStopsAtTheDeadlineHasTimedOut(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Concurrency: 20, NoReaper: true})
	w.HandleRaw("obey", raw(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
	s.run(w)
	var ids []string
	for i := range 200 {
		ids = append(ids, s.enqueue(queue.Task{Kind: "obey", Timeout: 50*time.Millisecond + time.Duration(i)*70*time.Microsecond}))
	}
	for _, id := range ids {
		if r := s.ended(id); !r.TimedOut || r.TimeoutType != "execution" {
			t.Fatalf("the task is %s, reason %q: %s; want a timeout", r.Status, r.Reason, r.Error)
		}
	}
}

func TestANewClaimStopsTheOldAttempt(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Lease: 30 * time.Second, Beat: 100 * time.Millisecond})
	causes, began := make(chan error, 1), make(chan struct{}, 1)
	hung := hang(causes)
	w.HandleRaw("hang", func(ctx context.Context, p []byte) ([]byte, error) {
		began <- struct{}{}
		return hung(ctx, p)
	})
	id := s.enqueue(queue.Task{Kind: "hang"})
	s.run(w)
	receive(t, began)
	// Do what a sweep and another worker do after a pause longer than the lease.
	root := s.q.Root(0)
	state := s.rdb.Get(s.ctx, root+":state:"+id).Val()
	second := strings.Replace(state, "RUNNING 1 ", "RUNNING 2 ", 1)
	if second == state {
		t.Fatalf("the state %q is not that of a first claim", state)
	}
	if err := s.rdb.Set(s.ctx, root+":state:"+id, second, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if cause := receive(t, causes); !errors.Is(cause, worker.ErrClaimLost) {
		t.Fatalf("the cause of the handler's context is %v", cause)
	}
	await.Until(t, "the slot is free", func() bool { return w.Stats().Running == 0 })
	if r := s.record(id); r.Status != queue.Running {
		t.Errorf("the task of the second claim is %s, want RUNNING", r.Status)
	}
}

// The reaper's messages and the worker's own timers race for 1,000 timeouts. The cause is the same.
func TestEveryTimeoutHasItsCause(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	type end struct {
		kind  string
		cause error
	}
	ends := make(chan end, 1000)
	w := worker.New(s.q, worker.Config{Concurrency: 1000}) // all handlers start before their deadline
	for _, kind := range []string{"deadline", "attempt"} {
		w.HandleRaw(kind, raw(func(ctx context.Context) error {
			<-ctx.Done()
			ends <- end{kind, context.Cause(ctx)}
			return ctx.Err()
		}))
	}
	s.run(w)
	for range 500 {
		s.enqueue(queue.Task{Kind: "deadline", Timeout: 5 * time.Second, AttemptTimeout: time.Hour})
		s.enqueue(queue.Task{Kind: "attempt", Timeout: time.Hour, AttemptTimeout: 20 * time.Millisecond})
	}
	for range 1000 {
		e := await.Receive(t, ends, "a handler ends")
		want := map[string]error{"deadline": worker.ErrDeadline, "attempt": worker.ErrAttemptTimeout}[e.kind]
		if !errors.Is(e.cause, want) {
			t.Fatalf("the cause in a handler of kind %s is %v, want %v", e.kind, e.cause, want)
		}
	}
}
