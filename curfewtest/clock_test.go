package curfewtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestTheClockIsThatOfTheTest(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		// real time: another clock differs by years
		if now := curfewtest.New(t, config).Now(); time.Since(now).Abs() > time.Minute {
			t.Errorf("the clock of a new stage is at %v, want the present", now)
		}
		config.Start = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
		c := curfewtest.New(t, config)
		c.Advance(90 * time.Second)
		r := c.Enqueue(queue.Task{Kind: "k", Timeout: time.Minute})
		created, want := c.Get(r.ID).CreatedAt, config.Start.Add(90*time.Second)
		if !c.Now().Equal(want) || !created.Equal(want) || !r.Deadline.Equal(want.Add(time.Minute)) {
			t.Errorf("the clock is at %v, a task was created at %v with the deadline %v, want %v and a minute later", c.Now(), created, r.Deadline, want)
		}
	})
}

// If the clock jumped, the task would get in line only at the end of the move.
func TestAdvanceStopsAtEachInstant(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		config.Queue.Partitions = 2
		c := curfewtest.New(t, config)
		start := c.Now()
		for range 2 { // one in each partition
			c.Enqueue(queue.Task{Kind: "k", Delay: 5 * time.Second, QueueTimeout: 10 * time.Second})
		}
		c.Advance(15 * time.Second)
		for _, r := range c.Tasks("k") {
			c.AssertStatus(r.ID, queue.Pending)
		}
		c.Advance(time.Hour)
		for _, r := range c.Tasks("k") {
			c.AssertTimedOut(r.ID)
			if r.TimeoutType != "queue" || r.CompletedAt.Sub(start) != 15*time.Second || r.DetectedAt.Sub(start) != 15*time.Second+time.Millisecond {
				t.Errorf("%s ended by %s at %v, detected at %v, want queue, 15s, 15.001s", r.ID, r.TimeoutType, r.CompletedAt.Sub(start), r.DetectedAt.Sub(start))
			}
		}
	})
}

func TestAdvanceRemovesRecordsAfterTheirRetention(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", succeed)
		id := c.Enqueue(queue.Task{Kind: "k", Retention: time.Hour}).ID
		c.RunOne()
		c.Advance(time.Hour - time.Millisecond)
		c.MustComplete(id)
		c.Advance(time.Millisecond)
		if all := c.Tasks(""); len(all) != 0 {
			t.Errorf("there are still %d tasks", len(all))
		}
	})
}

func TestDrainAllReachesTheFarFuture(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", succeed)
		at := c.Now().AddDate(100, 0, 0)
		c.Enqueue(queue.Task{Kind: "k", StartAt: at})
		if runs := c.DrainAll(); len(runs) != 1 || !c.Now().Equal(at) {
			t.Errorf("DrainAll ran %d tasks and moved the clock to %v, want 1 and %v", len(runs), c.Now(), at)
		}
	})
}

// A worker and its reaper can run on the same server, whose clock moves only with Advance.
func TestARealWorkerRunsBesideTheStage(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		w := worker.New(c.Queue, worker.Config{})
		w.HandleRaw("k", succeed)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run = %v", err)
			}
		}()
		patience, stop := context.WithTimeout(t.Context(), await.Patience)
		defer stop()
		if result, err := c.Queue.Result(patience, c.Enqueue(task("k")).ID); string(result) != "done" || err != nil {
			t.Errorf("a ready task gave %q, %v, want done", result, err)
		}
		later := c.Enqueue(queue.Task{Kind: "k", Delay: time.Minute}).ID
		c.Advance(time.Minute)
		if result, err := c.Queue.Result(patience, later); string(result) != "done" || err != nil {
			t.Errorf("a delayed task gave %q, %v after Advance, want done", result, err)
		}
	})
}

func TestAdvanceRoundsUpToMilliseconds(t *testing.T) {
	c := curfewtest.New(t)
	start := c.Now()
	c.Advance(time.Nanosecond)
	c.Advance(2*time.Millisecond + time.Microsecond)
	if moved := c.Now().Sub(start); moved != 4*time.Millisecond {
		t.Errorf("the clock moved by %v, want 1ms and 3ms", moved)
	}
}

func TestDrainAllRemovesRecordsOnItsWay(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", succeed)
		first := c.Enqueue(queue.Task{Kind: "k", Retention: time.Minute}).ID
		later := c.Enqueue(queue.Task{Kind: "k", Delay: time.Hour}).ID
		c.DrainAll()
		if all := c.Tasks(""); len(all) != 1 || all[0].ID != later {
			t.Errorf("there are still %d tasks, want only %s, and %s removed after a minute", len(all), later, first)
		}
	})
}
