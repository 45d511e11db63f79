package curfewtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestHandlersThatEnqueue(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		config.Queue.Partitions = 3
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("parent", raw(func(ctx context.Context) error {
			if _, err := c.Queue.Enqueue(ctx, queue.Task{Kind: "child", ID: worker.Info(ctx).ID + ".1"}); err != nil {
				return err
			}
			_, err := c.Queue.Enqueue(ctx, queue.Task{Kind: "next", Delay: time.Minute})
			return err
		}))
		c.Worker.HandleRaw("child", succeed)
		c.Worker.HandleRaw("next", succeed)
		c.Enqueue(task("parent"))
		if got := fmt.Sprint(kinds(c.Drain())); got != "[parent]" {
			t.Errorf("ran %s, want [parent], since the child ends with its owner", got)
		}
		c.Advance(0)
		child, next := c.Tasks("child")[0], c.Tasks("next")[0]
		if child.Status != queue.Cancelled || child.Reason != "owner_ended" || next.Status != queue.Pending {
			t.Errorf("the child is %s (%s), the next task %s, want CANCELLED (owner_ended) and PENDING", child.Status, child.Reason, next.Status)
		}
		start := c.Now()
		if runs := c.DrainAll(); len(runs) != 1 || runs[0].Kind != "next" || c.Now().Sub(start) != time.Minute {
			t.Errorf("DrainAll ran %v and moved the clock by %v, want next after 1m", kinds(runs), c.Now().Sub(start))
		}
		c.AssertNothingLeft()
	})
}

// A handler that waits for a child must run it, since no other goroutine does.
func TestAHandlerCanCallRunOne(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("child", succeed)
		c.Worker.HandleRaw("parent", func(ctx context.Context, _ []byte) ([]byte, error) {
			r, err := c.Queue.Enqueue(ctx, queue.Task{Kind: "child", ID: worker.Info(ctx).ID + ".1"})
			if err != nil {
				return nil, err
			}
			c.RunOne()
			return c.Queue.Result(ctx, r.ID)
		})
		id := c.Enqueue(task("parent")).ID
		c.RunOne()
		if got := string(c.MustComplete(id)); got != "done" {
			t.Errorf("the parent gave %q, want done", got)
		}
	})
}

func TestDrainRunsReadyTasksAndDrainAllMovesTheClock(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("flaky", raw(func(ctx context.Context) error {
			if job := worker.Info(ctx); job.Attempt <= 2 {
				return worker.RetryAfter(time.Duration(job.Attempt)*time.Minute, errors.New("not yet"))
			}
			return nil
		}))
		c.Worker.HandleRaw("later", succeed)
		c.Enqueue(queue.Task{Kind: "flaky", MaxRetries: 5})
		c.Enqueue(queue.Task{Kind: "later", Delay: 90 * time.Second})
		start := c.Now()
		first := kinds(c.Drain())
		if again := c.Drain(); fmt.Sprint(first) != "[flaky]" || len(again) != 0 || c.Now() != start {
			t.Errorf("Drain ran %v, then %v, and the clock moved by %v, want [flaky], nothing, 0s", first, kinds(again), c.Now().Sub(start))
		}
		runs := c.DrainAll()
		if got := fmt.Sprint(kinds(runs)); got != "[flaky later flaky]" || c.Now().Sub(start) != 3*time.Minute {
			t.Errorf("DrainAll ran %s and moved the clock by %v, want [flaky later flaky], 3m", got, c.Now().Sub(start))
		}
		c.AssertNothingLeft()
	})
}

func TestDrainEndsAfterMaxRuns(t *testing.T) {
	t.Parallel()
	said := spied(t, curfewtest.Config{MaxRuns: 20}, func(c *curfewtest.Stage) {
		c.Worker.HandleRaw("k", raw(func(context.Context) error { return worker.Release(0) }))
		c.Enqueue(task("k"))
		c.Drain()
	})
	if !strings.HasPrefix(said, "fatal: Drain ran 20 tasks, and more are ready. The last was task 0-") ||
		!strings.HasSuffix(said, ` of kind "k", which ran 20 times. If no task becomes ready without end, raise Config.MaxRuns.`) {
		t.Errorf("Drain reported %q", said)
	}
	said = spied(t, curfewtest.Config{MaxRuns: 20}, func(c *curfewtest.Stage) {
		c.Worker.HandleRaw("daily", raw(func(ctx context.Context) error {
			_, err := c.Queue.Enqueue(ctx, queue.Task{Kind: "daily", Delay: 24 * time.Hour})
			return err
		}))
		c.Enqueue(task("daily"))
		c.DrainAll()
	})
	if !strings.HasPrefix(said, "fatal: DrainAll ran 20 tasks, and more are ready.") {
		t.Errorf("DrainAll reported %q", said)
	}
}

func TestMaxRunsDefaultsTo1000(t *testing.T) {
	t.Parallel()
	said := spied(t, curfewtest.Config{Client: redistest.Start(t).Client(t)}, func(c *curfewtest.Stage) { // the embedded server takes ten times as long
		c.Worker.HandleRaw("k", raw(func(context.Context) error { return worker.Release(0) }))
		c.Enqueue(task("k"))
		c.Drain()
	})
	if !strings.HasPrefix(said, "fatal: Drain ran 1000 tasks, and more are ready.") {
		t.Errorf("Drain reported %q", said)
	}
}
