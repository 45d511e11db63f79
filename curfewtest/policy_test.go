package curfewtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// attempts runs a task to its end, and returns the instants of its attempts and its record.
func attempts(t *testing.T, config curfewtest.Config, task queue.Task, handle func(c *curfewtest.Stage) error) (string, *queue.Record) {
	t.Helper()
	c := curfewtest.New(t, config)
	start := c.Now()
	var at []time.Duration
	c.Worker.HandleRaw(task.Kind, raw(func(context.Context) error {
		at = append(at, c.Now().Sub(start))
		return handle(c)
	}))
	id := c.Enqueue(task).ID
	c.DrainAll()
	return fmt.Sprint(at), c.Get(id)
}

func TestDrainAllFollowsTheBackOff(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		at, r := attempts(t, config, queue.Task{Kind: "k", MaxRetries: 3, Backoff: queue.Backoff{Delay: time.Minute, Exponential: true}},
			func(*curfewtest.Stage) error { return errors.New("503") })
		if at != "[0s 1m0s 3m0s 7m0s]" || r.Status != queue.Failed {
			t.Errorf("the attempts were at %s and the task is %s, want 0s, 1m, 3m, 7m and FAILED", at, r.Status)
		}
	})
}

func TestAnAttemptBeyondItsLimitIsRetried(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		first := true
		at, r := attempts(t, config, queue.Task{Kind: "k", MaxRetries: 1, AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry},
			func(c *curfewtest.Stage) error {
				if first {
					first = false
					c.Advance(time.Minute)
				}
				return nil
			})
		if at != "[0s 1m0s]" || r.Status != queue.Completed || r.Retries != 1 {
			t.Errorf("the attempts were at %s and the task is %s after %d retries, want 0s, 1m and COMPLETED after 1", at, r.Status, r.Retries)
		}
	})
}

func TestDefaultsOfAKindApplyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.Defaults("k", queue.Defaults{Timeout: time.Minute})
		c.Worker.HandleRaw("k", succeed)
		if r := c.Enqueue(task("k")); !r.Deadline.Equal(c.Now().Add(time.Minute)) {
			t.Errorf("the deadline is %v, want a minute after %v", r.Deadline, c.Now())
		}
	})
}

func TestDefaultsApplyToTasksOfTheCodeUnderTestAfterTheFirstCall(t *testing.T) {
	for name, call := range map[string]func(c *curfewtest.Stage){
		"Enqueue": func(c *curfewtest.Stage) { c.Enqueue(task("k")) },
		"RunOne":  func(c *curfewtest.Stage) { c.RunOne() },
		"Drain":   func(c *curfewtest.Stage) { c.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := curfewtest.New(t)
			c.Worker.Defaults("k", queue.Defaults{Timeout: time.Minute})
			c.Worker.HandleRaw("k", succeed)
			before, err := c.Queue.Enqueue(t.Context(), task("k"))
			if err != nil || !before.Deadline.IsZero() {
				t.Fatalf("the deadline is %v, %v, want none before the first call", before.Deadline, err)
			}
			call(c)
			after, err := c.Queue.Enqueue(t.Context(), task("k"))
			if err != nil || !after.Deadline.Equal(c.Now().Add(time.Minute)) {
				t.Errorf("the deadline is %v, %v, want a minute after %v", after.Deadline, err, c.Now())
			}
		})
	}
}

func TestAHookRunsAfterItsTask(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", fails(errors.New("no")))
		var ended queue.HookPayload
		worker.Handle(c.Worker, "undo", func(_ context.Context, in queue.HookPayload) (string, error) { ended = in; return "", nil })
		id := c.Enqueue(queue.Task{Kind: "k", Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "undo"}}}).ID
		if got := fmt.Sprint(kinds(c.Drain())); got != "[k undo]" || ended.TaskID != id || ended.Error != "no" {
			t.Errorf("ran %s, and the hook got %+v, want [k undo] and the error no of %s", got, ended, id)
		}
	})
}

func TestACancelledHandlerHasItsGrace(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		var before, after error
		c.Worker.HandleRaw("k", raw(func(ctx context.Context) error {
			// Not with ctx, which may end before the reply is read.
			if _, err := c.Queue.Cancel(t.Context(), worker.Info(ctx).ID, "enough"); err != nil {
				return err
			}
			c.Advance(0)
			before = context.Cause(ctx)
			c.AssertStatus(worker.Info(ctx).ID, queue.Running)
			c.Advance(time.Minute)
			after = context.Cause(ctx)
			c.AssertStatus(worker.Info(ctx).ID, queue.Cancelled)
			return nil
		}))
		id := c.Enqueue(queue.Task{Kind: "k", CancelGrace: time.Second}).ID
		c.RunOne()
		c.AssertStatus(id, queue.Cancelled)
		if !errors.Is(before, worker.ErrCancelled) || after != before {
			t.Errorf("the cause was %v, then %v, want %v", before, after, worker.ErrCancelled)
		}
	})
}

func TestPromisesAndTimers(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", succeed)
		promise := c.Enqueue(queue.Task{Kind: "approval", Promise: true}).ID
		timer := c.Enqueue(queue.Task{Kind: "nap", Timer: true, Delay: time.Hour}).ID
		start := c.Now()
		if runs := c.DrainAll(); len(runs) != 0 || c.Now().Sub(start) != time.Hour {
			t.Errorf("DrainAll ran %v and moved the clock by %v, want nothing and 1h", kinds(runs), c.Now().Sub(start))
		}
		c.MustComplete(timer)
		c.AssertStatus(promise, queue.Pending)
		if _, err := c.Queue.Resolve(t.Context(), promise, []byte("yes")); err != nil {
			t.Fatal(err)
		}
		if got := string(c.MustComplete(promise)); got != "yes" {
			t.Errorf("the result of the promise is %q, want yes", got)
		}
		c.AssertNothingLeft()
	})
}
