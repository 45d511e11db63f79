package curfewtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// became holds what a test checks of a task after a run.
type became struct {
	Status      queue.Status
	Result      string
	Error       string // the error, or that of the last attempt if the task is retried
	Reason      string
	TimeoutType string
	Code        int
	Retries     int
	StartsIn    time.Duration
	Accepted    bool
}

func TestRunOneGivesTheTaskTheResultOfItsHandler(t *testing.T) {
	boom := errors.New("boom")
	bounded := queue.Task{Kind: "k", Timeout: time.Hour, AttemptTimeout: time.Minute, MaxRetries: 3}
	takes := func(d time.Duration) func(c *curfewtest.Stage) worker.Handler {
		return func(c *curfewtest.Stage) worker.Handler {
			return raw(func(context.Context) error { c.Advance(d); return nil })
		}
	}
	gives := func(err error) func(c *curfewtest.Stage) worker.Handler {
		return func(c *curfewtest.Stage) worker.Handler { return raw(func(context.Context) error { return err }) }
	}
	for _, test := range []struct {
		claim   string
		task    queue.Task
		handler func(c *curfewtest.Stage) worker.Handler
		want    became
	}{
		{"success", bounded, func(c *curfewtest.Stage) worker.Handler { return succeed },
			became{Status: queue.Completed, Result: "done", Accepted: true}},
		{"an error without a retry is the end", task("k"), gives(boom),
			became{Status: queue.Failed, Error: "boom", Reason: "error", Accepted: true}},
		{"an error with a retry left waits for its time", bounded, gives(worker.RetryAfter(30*time.Second, boom)),
			became{Status: queue.Pending, Error: "boom", Retries: 1, StartsIn: 30 * time.Second, Accepted: true}},
		{"a retry that would begin after the deadline is not made", queue.Task{Kind: "k", Timeout: time.Second, MaxRetries: 3},
			gives(worker.RetryAfter(30*time.Second, boom)),
			became{Status: queue.Failed, Error: "boom", Reason: "error", Accepted: true}},
		{"a discarded task is not retried", bounded, gives(worker.Discard(boom)),
			became{Status: queue.Failed, Error: "boom", Reason: "failed", Accepted: true}},
		{"an exit code is kept", task("k"), gives(worker.Fail(3, boom)),
			became{Status: queue.Failed, Error: "boom", Reason: "error", Code: 3, Accepted: true}},
		{"a release spends no retry", bounded, gives(worker.Release(10 * time.Second)),
			became{Status: queue.Pending, StartsIn: 10 * time.Second, Accepted: true}},
		{"a panic is a failed attempt", task("k"), func(*curfewtest.Stage) worker.Handler {
			return raw(func(context.Context) error { panic("boom") })
		}, became{Status: queue.Failed, Error: "panic: boom", Reason: "error", Accepted: true}},
		{"an attempt that ends exactly at its limit completes", bounded, takes(time.Minute),
			became{Status: queue.Completed, Accepted: true}},
		{"an attempt that ends a ms after its limit has timed out", bounded, takes(time.Minute + time.Millisecond),
			became{Status: queue.Failed, Error: "Task exceeded deadline", Reason: "timeout", TimeoutType: "attempt"}},
		{"an attempt that ends after the deadline has timed out", queue.Task{Kind: "k", Timeout: time.Second}, takes(time.Minute),
			became{Status: queue.Failed, Error: "Task exceeded deadline", Reason: "timeout", TimeoutType: "execution"}},
		{"a handler without limits can take a month", task("k"), takes(30 * 24 * time.Hour),
			became{Status: queue.Completed, Accepted: true}},
		{"a task that its handler cancels", bounded, func(c *curfewtest.Stage) worker.Handler {
			return raw(func(ctx context.Context) error {
				c.Queue.Cancel(ctx, worker.Info(ctx).ID, "changed my mind")
				<-ctx.Done() // a published stop ends it
				return context.Cause(ctx)
			})
		}, became{Status: queue.Cancelled, Error: "changed my mind", Reason: "cancelled"}},
		{"a result that is too big", task("k"), func(c *curfewtest.Stage) worker.Handler {
			return func(context.Context, []byte) ([]byte, error) { return make([]byte, 2<<20), nil }
		}, became{Status: queue.Failed, Reason: "failed", Accepted: true,
			Error: "the result has 2097152 bytes, the limit is 1048576: store it elsewhere and return a reference"}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			both(t, func(t *testing.T, config curfewtest.Config) {
				c := curfewtest.New(t, config)
				c.Worker.HandleRaw("k", test.handler(c))
				id := c.Enqueue(test.task).ID
				run := c.RunOne()
				if run.ID != id || run.Claim.ID != id || run.Report.ID != id {
					t.Errorf("RunOne ran %s, %s, %s, want %s", run.ID, run.Claim.ID, run.Report.ID, id)
				}
				got := became{
					Status: run.Status, Result: string(run.Result), Error: run.Error + run.LastError, Reason: string(run.Reason),
					TimeoutType: string(run.TimeoutType), Code: run.Code, Retries: run.Retries, Accepted: run.Verdict.Accepted(),
				}
				got.Error, _, _ = strings.Cut(got.Error, "\n\n") // a panic's stack
				if !run.AvailableAt.IsZero() {
					got.StartsIn = run.AvailableAt.Sub(c.Now())
				}
				if got != test.want {
					t.Errorf("the task is\n%+v, want\n%+v", got, test.want)
				}
			})
		})
	}
}

func TestTheContextHasEndedWhenAdvanceReturns(t *testing.T) {
	for _, test := range []struct {
		claim string
		task  queue.Task
		want  error
	}{
		{"by the deadline", queue.Task{Kind: "k", Timeout: 30 * time.Second, AttemptTimeout: time.Minute}, worker.ErrDeadline},
		{"by the limit of the attempt", queue.Task{Kind: "k", Timeout: time.Hour, AttemptTimeout: time.Minute}, worker.ErrAttemptTimeout},
		{"not at all without a limit", task("k"), nil},
	} {
		t.Run(test.claim, func(t *testing.T) {
			both(t, func(t *testing.T, config curfewtest.Config) {
				c := curfewtest.New(t, config)
				before, after := errors.New("not called"), errors.New("not called")
				c.Worker.HandleRaw("k", raw(func(ctx context.Context) error {
					before = context.Cause(ctx)
					c.Advance(2 * time.Minute)
					after = context.Cause(ctx)
					return nil
				}))
				c.Enqueue(test.task)
				c.RunOne()
				if before != nil || after != test.want {
					t.Errorf("the cause was %v before and %v after, want nil and %v", before, after, test.want)
				}
			})
		})
	}
}

func TestAHandlerRunsInTheGoroutineOfTheTest(t *testing.T) {
	t.Parallel()
	goroutine := func() string {
		stack := make([]byte, 64)
		return string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
	}
	c := curfewtest.New(t)
	var in string
	c.Worker.HandleRaw("k", raw(func(context.Context) error { in = goroutine(); return nil }))
	c.Enqueue(task("k"))
	c.RunOne()
	if want := goroutine(); in != want {
		t.Errorf("the handler ran in goroutine %s, the test in %s", in, want)
	}
}

func TestAHandlerCanEndTheGoroutineOfTheTest(t *testing.T) {
	t.Parallel()
	var q *queue.Queue
	var id string
	shared := curfewtest.New(t) // outlives the stage's test
	said := spied(t, curfewtest.Config{}, func(c *curfewtest.Stage) {
		q = shared.Queue
		shared.Worker.HandleRaw("k", raw(func(context.Context) error { runtime.Goexit(); return nil }))
		id = shared.Enqueue(task("k")).ID
		shared.RunOne()
		t.Error("RunOne returned after its handler had ended the goroutine")
	})
	r, err := q.Get(t.Context(), id)
	if err != nil || r.Status != queue.Failed || !strings.Contains(r.Error, "ended its goroutine") || said != "" {
		t.Errorf("the task is %+v, %v and the stage reported %q, want a FAILED task and no report", r, err, said)
	}
}

func TestMiddlewareRunsAndInfoIsComplete(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		var order []string
		around := func(name string) func(worker.Handler) worker.Handler {
			return func(next worker.Handler) worker.Handler {
				return func(ctx context.Context, payload []byte) ([]byte, error) {
					order = append(order, name)
					return next(ctx, append(payload, name...))
				}
			}
		}
		c.Worker.Use(around("a"), around("b"))
		var got worker.Job
		var in string
		c.Worker.HandleRaw("k", func(ctx context.Context, payload []byte) ([]byte, error) {
			got, in = worker.Info(ctx), string(payload)
			return nil, worker.RetryAfter(0, errors.New("again"))
		})
		id := c.Enqueue(queue.Task{Kind: "k", Queue: "q", Payload: []byte("p"), MaxRetries: 1, Headers: map[string]string{"h": "v"}}).ID
		c.DrainAll()
		want := worker.Job{ID: id, Kind: "k", Queue: "q", Epoch: 2, Attempt: 2, Retries: 1, MaxRetries: 1,
			CreatedAt: c.Tasks("k")[0].CreatedAt, Headers: map[string]string{"h": "v"}}
		if got.Worker == "" || !got.ClaimedAt.Equal(c.Now()) || got.ReceivedAt.IsZero() {
			t.Errorf("Info has no worker, or wrong instants: %+v", got)
		}
		got.Worker, got.ClaimedAt, got.ReceivedAt = "", time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, want) || in != "pab" || fmt.Sprint(order) != "[a b a b]" {
			t.Errorf("the handler got %q and\n%+v, want pab and\n%+v; middleware ran as %v", in, got, want, order)
		}
	})
}

func TestTasksRunInTheOrderOfTheirQueues(t *testing.T) {
	tasks := []queue.Task{
		{Kind: "low", Queue: "b"}, {Kind: "first"}, {Kind: "second"}, {Kind: "urgent", Priority: 3}, {Kind: "a", Queue: "a"},
	}
	for _, test := range []struct {
		claim  string
		config worker.Config
		want   string
	}{
		{"all queues by name, each in its order", worker.Config{}, "[a low urgent first second]"},
		{"the greatest weight first, and no other queues", worker.Config{Queues: map[string]int{"b": 1, "default": 2}}, "[urgent first second low]"},
		{"strict queues in their order", worker.Config{Strict: []string{"b", "a"}}, "[low a]"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			both(t, func(t *testing.T, config curfewtest.Config) {
				config.Worker = test.config
				c := curfewtest.New(t, config)
				for _, task := range tasks {
					c.Worker.HandleRaw(task.Kind, succeed)
					c.Enqueue(task)
				}
				if got := fmt.Sprint(kinds(c.Drain())); got != test.want {
					t.Errorf("they ran as %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestTheProgramsOwnWorkerRunsOnTheStage(t *testing.T) {
	t.Parallel()
	c := curfewtest.New(t)
	c.Worker = worker.New(c.Queue, worker.Config{Queues: map[string]int{"mail": 1}})
	var cause error
	c.Worker.HandleRaw("k", raw(func(ctx context.Context) error {
		c.Advance(time.Minute)
		cause = context.Cause(ctx)
		return nil
	}))
	c.Enqueue(task("k")) // in a queue from which the worker does not take
	mail := c.Enqueue(queue.Task{Kind: "k", Queue: "mail", AttemptTimeout: time.Second}).ID
	if runs := c.Drain(); len(runs) != 1 || runs[0].ID != mail || cause != worker.ErrAttemptTimeout {
		t.Errorf("%d tasks ran, and the context ended with %v, want only the task of the queue mail, ended by the limit of its attempt", len(runs), cause)
	}
}

func TestTheProgressOfAHandlerIsOnTheRecord(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", raw(func(ctx context.Context) error {
			worker.Progress(ctx, "started")
			c.Advance(time.Minute)
			worker.Progress(ctx, fmt.Sprint("attempt ", worker.Info(ctx).Attempt))
			return errors.New("boom")
		}))
		c.Enqueue(queue.Task{Kind: "k", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, Timeout: 2 * time.Minute})
		for _, want := range []struct {
			status   queue.Status
			progress string
		}{{queue.Pending, "attempt 1"}, {queue.Failed, "attempt 2"}} {
			run := c.RunOne()
			if run.Status != want.status || run.Progress != want.progress || !run.ProgressAt.Equal(c.Now()) {
				t.Errorf("the task is %s with progress %q of %v, want %s, %q, now", run.Status, run.Progress, run.ProgressAt, want.status, want.progress)
			}
		}
	})
}

func TestARunHasNoRecordIfThatWasRemoved(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", raw(func(context.Context) error { c.Advance(time.Hour); return nil }))
		c.Enqueue(queue.Task{Kind: "k", Timeout: time.Minute, Retention: time.Minute})
		if run := c.RunOne(); run.Record != nil || run.Verdict.Accepted() {
			t.Errorf("the run has the record %+v and the verdict %+v, want none and a refusal", run.Record, run.Verdict)
		}
	})
}

// A limit of the clock that never moves still ends in real time, so that a handler which hangs ends its test.
func TestTheContextOfAHandlerAlsoEndsInRealTime(t *testing.T) {
	c := curfewtest.New(t)
	c.Worker.HandleRaw("k", hang)
	start := c.Now()
	c.Enqueue(queue.Task{Kind: "k", AttemptTimeout: 20 * time.Millisecond})
	if run := c.RunOne(); run.Report.Verb == queue.Complete || c.Now() != start {
		t.Errorf("the handler reported %+v at %v, want that its context ended, and an unmoved clock", run.Report, c.Now())
	}
}
