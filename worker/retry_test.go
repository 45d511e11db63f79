package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

type parameters struct {
	Left int `json:"left"`
}

// The table has each reason why a failed attempt is retried or not. The number of runs shows which
// attempts were retried.
func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	fail := func(err error) func(context.Context, parameters) (parameters, error) {
		return func(context.Context, parameters) (parameters, error) { return parameters{}, err }
	}
	boom := errors.New("boom")
	for _, c := range []struct {
		claim  string
		task   queue.Task
		handle func(context.Context, parameters) (parameters, error)
		runs   int32
		reason queue.Reason
	}{
		{"2 retries are 3 attempts", queue.Task{MaxRetries: 2}, fail(boom), 3, "error"},
		{"0 retries are 1 attempt", queue.Task{}, fail(boom), 1, "error"},
		{"a failure with Discard is not retried", queue.Task{MaxRetries: 2}, fail(worker.Discard(boom)), 1, "failed"},
		{"an expression retries a failure with Discard", queue.Task{MaxRetries: 2, Retry: "tasks.k.phase != 'Succeeded'"},
			fail(worker.Discard(boom)), 3, "failed"},
		{"an expression prevents a retry", queue.Task{MaxRetries: 2, Retry: "tasks.k.phase == 'Timeout'"}, fail(boom), 1, "error"},
		{"an expression reads the code", queue.Task{MaxRetries: 2, Retry: "tasks.k.code == 3"}, fail(worker.Fail(3, boom)), 3, "error"},
		{"an expression reads the message", queue.Task{MaxRetries: 2, Retry: "tasks.k.msg contains 'bo'"}, fail(boom), 3, "error"},
		{"a panic is an error", queue.Task{MaxRetries: 1}, func(context.Context, parameters) (parameters, error) { panic("no") }, 2, "error"},
		{"an attempt that has timed out is not retried by default", queue.Task{MaxRetries: 2, AttemptTimeout: 20 * time.Millisecond}, untilItsEnd, 1, "timeout"},
		{"an attempt that has timed out is retried with OnTimeout retry", queue.Task{MaxRetries: 2, AttemptTimeout: 20 * time.Millisecond, OnTimeout: queue.OnTimeoutRetry}, untilItsEnd, 3, "timeout"},
		{"an attempt that has timed out is retried if the expression says so", queue.Task{MaxRetries: 2, AttemptTimeout: 20 * time.Millisecond, Retry: "tasks.k.phase == 'Timeout'"}, untilItsEnd, 3, "timeout"},
		{"a retry that could not start before the deadline is not made", queue.Task{MaxRetries: 2, Timeout: 10 * time.Second, Backoff: queue.Backoff{Delay: time.Minute}},
			fail(boom), 1, "error"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, worker.Config{})
			var runs atomic.Int32
			worker.Handle(w, "k", func(ctx context.Context, in parameters) (parameters, error) {
				runs.Add(1)
				return c.handle(ctx, in)
			})
			s.run(w)
			c.task.Kind = "k"
			r := s.ended(s.enqueue(c.task))
			if r.Status != queue.Failed || r.Reason != c.reason || runs.Load() != c.runs {
				t.Errorf("the task ended as %s %s after %d attempts (%s, %s), want FAILED %s after %d",
					r.Status, r.Reason, runs.Load(), r.Error, r.RetryError, c.reason, c.runs)
			}
			if want := int(c.runs) - 1; r.Retries != want {
				t.Errorf("retries = %d, want %d", r.Retries, want)
			}
		})
	}
}

func untilItsEnd(ctx context.Context, _ parameters) (parameters, error) {
	<-ctx.Done()
	return parameters{}, ctx.Err()
}

func TestExpressionReadsTheOutputOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	left := 3
	worker.Handle(w, "copy", func(context.Context, struct{}) (parameters, error) {
		left--
		return parameters{left}, errors.New("not all could be copied")
	})
	s.run(w)
	r := s.ended(s.enqueue(queue.Task{Kind: "copy", MaxRetries: 10, Retry: "tasks.copy.outputs.parameters.left > 0"}))
	if left != 0 || r.Retries != 2 || r.Result != nil {
		t.Errorf("%d left after %d retries, with the result %q; want 0 after 2, and no result", left, r.Retries, r.Result)
	}
}

func TestExpressionThatFailsIsRecordedAndRetriesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return errors.New("boom") }))
	s.run(w)
	r := s.ended(s.enqueue(queue.Task{Kind: "k", MaxRetries: 3, Retry: "tasks.k.outputs.parameters.left > 0"}))
	if r.Retries != 0 || r.RetryError == "" || r.Error != "boom" {
		t.Errorf("%d retries, retry error %q, error %q; want 0, some text, and boom", r.Retries, r.RetryError, r.Error)
	}
}

func TestBackoffSpacesTheAttempts(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	var starts []time.Time
	w.HandleRaw("k", raw(func(context.Context) error { starts = append(starts, time.Now()); return errors.New("boom") }))
	s.run(w)
	s.ended(s.enqueue(queue.Task{Kind: "k", MaxRetries: 3, Backoff: queue.Backoff{Delay: 40 * time.Millisecond, Exponential: true, Max: 80 * time.Millisecond}}))
	for i, least := range []time.Duration{40, 80, 80} {
		if gap := starts[i+1].Sub(starts[i]); gap < least*time.Millisecond-2*time.Millisecond {
			t.Errorf("attempt %d began %v after the one before, want %d ms at least", i+2, gap, least)
		}
	}
}

func TestAHookRunsOnceAtTheEndOfItsTask(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 2)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("work", raw(func(context.Context) error { return worker.Fail(7, errors.New("boom")) }))
	payloads := make(chan queue.HookPayload, 10)
	worker.Handle(w, "clean-up", func(ctx context.Context, e queue.HookPayload) (string, error) {
		payloads <- e
		return worker.Info(ctx).ID, nil
	})
	s.run(w)
	id := s.enqueue(queue.Task{Kind: "work", MaxRetries: 2, Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "clean-up"}}})
	r := s.ended(id)
	e := receive(t, payloads)
	want := queue.HookPayload{Event: "failure", TaskID: id, Kind: "work", Queue: "default", Status: queue.Failed, Reason: "error", Error: "boom", Code: 7,
		CreatedAt: r.CreatedAt.UnixMilli(), StartedAt: r.StartedAt.UnixMilli(), CompletedAt: r.CompletedAt.UnixMilli()}
	if e != want {
		t.Errorf("the hook's payload is %+v, want %+v", e, want)
	}
	if r := s.ended(id + "!failure"); r.Status != queue.Completed || r.HookOf != id || r.Deadline.Sub(r.CreatedAt) != 5*time.Minute {
		t.Errorf("the hook is %s %s, a hook of %s, with a timeout of %v; want COMPLETED, of %s, 5m", r.Status, r.Error, r.HookOf, r.Deadline.Sub(r.CreatedAt), id)
	}
	if len(payloads) > 0 {
		t.Errorf("the hook ran again: %+v", <-payloads)
	}
}

func TestAWorkerStoresTheDefaultsOfItsKinds(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 3)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return errors.New("boom") }))
	w.Defaults("k", queue.Defaults{Timeout: time.Hour, MaxRetries: 2, Retention: time.Minute})
	s.run(w)
	for p := range 3 { // the defaults are stored in one partition after the other
		await.Until(t, "the defaults are stored", func() bool { return s.rdb.HExists(s.ctx, s.q.Root(p), "kind:k").Val() })
	}
	var ids []string
	for range 3 { // one task in each partition
		ids = append(ids, s.enqueue(queue.Task{Kind: "k"}))
	}
	for _, id := range ids {
		if r := s.ended(id); r.Retries != 2 || r.Deadline.Sub(r.CreatedAt) != time.Hour {
			t.Errorf("%d retries and a timeout of %v, want 2 and 1h: the defaults of the kind", r.Retries, r.Deadline.Sub(r.CreatedAt))
		}
	}
	r := s.ended(s.enqueue(queue.Task{Kind: "k", Timeout: queue.None, MaxRetries: queue.NoRetries}))
	if r.Retries != 0 || !r.Deadline.IsZero() {
		t.Errorf("%d retries and a deadline %v, want neither: the task says None and NoRetries", r.Retries, r.Deadline)
	}
}

// Defaults apply to tasks that are enqueued after the defaults are stored. A producer that starts
// before the first worker stores them itself.
func TestAProducerThatStartsFirstDefinesItsKinds(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 2)
	defaults := queue.Defaults{Timeout: time.Hour, MaxRetries: 2, Backoff: queue.Backoff{Delay: time.Millisecond}}
	before := []string{s.enqueue(queue.Task{Kind: "k"}), s.enqueue(queue.Task{Kind: "k"})}
	for range 2 { // any number of times
		if err := s.q.DefineKind(s.ctx, "k", defaults); err != nil {
			t.Fatal(err)
		}
	}
	after := []string{s.enqueue(queue.Task{Kind: "k"}), s.enqueue(queue.Task{Kind: "k"})}
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return errors.New("boom") }))
	w.Defaults("k", defaults)
	s.run(w)
	for _, id := range after {
		if r := s.ended(id); r.Retries != 2 || r.Deadline.Sub(r.CreatedAt) != time.Hour {
			t.Errorf("a task enqueued after DefineKind: %d retries and a timeout of %v, want 2 and 1h", r.Retries, r.Deadline.Sub(r.CreatedAt))
		}
	}
	for _, id := range before { // defaults never apply to an earlier task
		if r := s.ended(id); r.Retries != 0 || !r.Deadline.IsZero() {
			t.Errorf("a task enqueued before DefineKind: %d retries and a deadline %v, want neither", r.Retries, r.Deadline)
		}
	}
}

func TestRunRefusesInvalidDefaults(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return nil }))
	w.Defaults("k", queue.Defaults{OnTimeout: queue.OnTimeoutRetry})
	err := w.Run(s.ctx)
	if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), `"k"`) || !strings.Contains(err.Error(), "max_retries") {
		t.Errorf("Run = %v, want an error that names the kind and the missing max_retries", err)
	}
}

func TestAHookPayloadHasAnyErrorText(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	id := s.enqueue(queue.Task{Kind: "k", Hooks: queue.Hooks{OnCancel: queue.Hook{Kind: "h", Queue: "hooks"}}})
	odd := "a \"quoted\" reason\nwith \x00, <é> and / in it"
	if _, err := s.q.Cancel(s.ctx, id, odd); err != nil {
		t.Fatal(err)
	}
	hook := s.record(id + "!cancel")
	var e queue.HookPayload
	if err := json.Unmarshal(hook.Payload, &e); err != nil {
		t.Fatalf("%v: %s", err, hook.Payload)
	}
	if e.Error != odd || e.TaskID != id || e.Event != "cancel" || e.Status != queue.Cancelled || hook.Queue != "hooks" {
		t.Errorf("the hook's payload is %+v in queue %s", e, hook.Queue)
	}
}

// Fail accepts any int as code. If Redis refused the report of such a code, the task would run again
// and again.
func TestFailKeepsAnyCode(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", raw(func(context.Context) error { return worker.Fail(math.MinInt64, errors.New("boom")) }))
	s.run(w)
	if r := s.ended(s.enqueue(queue.Task{Kind: "k"})); r.Code != math.MinInt64 || r.Epoch != 1 {
		t.Errorf("code %d after %d claims, want %d after 1", r.Code, r.Epoch, math.MinInt64)
	}
}
