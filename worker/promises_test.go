package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A handler that returns ErrSuspended without giving up its claim gets its task back: the next heartbeat
// does not name the claim.
func TestATaskIsGivenBackAfterErrSuspendedWithItsClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Beat: 20 * time.Millisecond})
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		if worker.Info(ctx).Epoch == 1 {
			return worker.ErrSuspended
		}
		return nil
	}))
	s.run(w)
	if r := s.ended(s.enqueue(queue.Task{Kind: "k"})); r.Status != queue.Completed || r.Epoch != 2 || r.Retries != 0 {
		t.Errorf("the task is %s after %d claims and %d retries, want COMPLETED after 2 and 0", r.Status, r.Epoch, r.Retries)
	}
	if got := w.Stats(); got.Suspended != 1 || got.Started != 2 {
		t.Errorf("Stats = %+v, want 1 suspended of 2 started", got)
	}
}

// The same if the handler returns while a heartbeat that names its claim is under way.
func TestATaskIsGivenBackAfterErrSuspendedInAHeartbeat(t *testing.T) {
	t.Parallel()
	var w *worker.Worker
	var id string
	returns, once := make(chan struct{}), sync.Once{}
	s := newStage(t, hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if has(cmd, id) && strings.HasSuffix(fmt.Sprint(cmd.Args()[1]), "_heartbeat") {
			once.Do(func() {
				close(returns)
				await.Until(t, "the handler has returned", func() bool { return w.Stats().Suspended == 1 })
			})
		}
		return err
	}), 1)
	w = worker.New(s.q, worker.Config{Beat: 20 * time.Millisecond})
	w.HandleRaw("k", raw(func(ctx context.Context) error {
		if worker.Info(ctx).Epoch > 1 {
			return nil
		}
		<-returns
		return worker.ErrSuspended
	}))
	id = s.enqueue(queue.Task{Kind: "k"})
	s.run(w)
	if r := s.ended(id); r.Status != queue.Completed || r.Epoch != 2 {
		t.Errorf("the task is %s after %d claims, want COMPLETED after 2", r.Status, r.Epoch)
	}
}

// RunOne gives back the task of such a handler too, and counts the attempt as Run does.
func TestRunOneGivesATaskBackAfterErrSuspendedWithItsClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return worker.ErrSuspended }))
	id := s.enqueue(queue.Task{Kind: "k"})
	if ran := s.runOne(w); ran == nil || ran.Report.Verb != "" || ran.Verdict != (queue.Verdict{}) {
		t.Errorf("RunOne = %+v, want a task without a report", ran)
	}
	if r := s.record(id); r.Status != queue.Pending || r.Retries != 0 {
		t.Errorf("the task is %s after %d retries, want PENDING after 0", r.Status, r.Retries)
	}
	if got, want := w.Stats(), (worker.Stats{Slots: 10, Started: 1, Suspended: 1}); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}

func TestRunOneLeavesNoGoroutineBehind(t *testing.T) {
	s := newStage(t, shared(t), 2)
	before := goleak.IgnoreCurrent()
	w := worker.New(s.q, worker.Config{TaskTimeout: time.Hour})
	w.HandleRaw("k", done)
	s.enqueue(queue.Task{Kind: "k"})
	if ran := s.runOne(w); ran == nil {
		t.Error("RunOne returned nil, want a task")
	}
	s.runOne(w) // without a task
	goleak.VerifyNone(t, before)
}

func TestDefaultsPanics(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", done)
	w.Defaults("k", queue.Defaults{MaxRetries: 1})
	panics(t, `kind "k" has defaults already`, func() { w.Defaults("k", queue.Defaults{}) })
	s.run(w)
	s.ended(s.enqueue(queue.Task{Kind: "k"}))
	panics(t, "before Run", func() { w.Defaults("other", queue.Defaults{}) })
}

func TestVerdictOf(t *testing.T) {
	for _, c := range []struct {
		claim string
		err   error
		want  queue.Outcome
	}{
		{"another error", errors.New("boom"), queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}},
		{"RetryAfter", worker.RetryAfter(time.Second, nil), queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Delay: time.Second}},
		{"Discard", worker.Discard(nil), queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed}},
		{"Fail", worker.Fail(3, nil), queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Code: 3}},
		{"Release", worker.Release(time.Second), queue.Outcome{Verb: queue.Release, Delay: time.Second}},
	} {
		if got := worker.VerdictOf(c.err); got.Verb != c.want.Verb || got.Class != c.want.Class || got.Code != c.want.Code ||
			got.Delay != c.want.Delay || got.Error != "" || got.ID != "" || got.Result != nil {
			t.Errorf("%s: VerdictOf = %+v, want %+v", c.claim, got, c.want)
		}
	}
}
