package curfewtest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// hang ends with its context, and returns the cause.
func hang(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Real days would exceed the patience of any test.
func TestInABubbleALimitOfDaysTakesNoRealTime(t *testing.T) {
	const days = 10 * 24 * time.Hour
	for name, task := range map[string]queue.Task{
		"Timeout":        {Kind: "hang", Timeout: days},
		"AttemptTimeout": {Kind: "hang", AttemptTimeout: days},
		"TimeoutGrace":   {Kind: "hang", Timeout: days + time.Hour, TimeoutGrace: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := curfewtest.New(t)
				c.Worker.HandleRaw("hang", hang)
				start := time.Now()
				r := c.Enqueue(task)
				c.RunOne()
				c.AssertTimedOut(r.ID)
				// real time: it is that of a bubble
				if took := time.Since(start); took < days || took > days+time.Second {
					t.Errorf("the handler ran for %v, want %v", took, days)
				}
			})
		})
	}
	t.Run("TaskTimeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := curfewtest.New(t, curfewtest.Config{Worker: worker.Config{TaskTimeout: days}})
			c.Worker.HandleRaw("hang", hang)
			r := c.Enqueue(queue.Task{Kind: "hang"})
			c.RunOne()
			c.AssertTimedOut(r.ID)
		})
	})
}

func TestInABubbleThereIsOneClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		c := curfewtest.New(t, curfewtest.Config{Start: start})
		agree := func(want time.Time) {
			t.Helper()
			redis := c.Get(c.Enqueue(queue.Task{Kind: "other"}).ID).CreatedAt
			if !c.Now().Equal(want) || !time.Now().Equal(want) || !redis.Equal(want) {
				t.Errorf("Now = %v, time.Now = %v, Redis has %v, want %v", c.Now().UTC(), time.Now().UTC(), redis.UTC(), want)
			}
		}
		agree(start)
		time.Sleep(time.Hour) // sleeps: the clock of synctest
		agree(start.Add(time.Hour))
		c.Advance(time.Hour)
		agree(start.Add(2 * time.Hour))

		slept := false
		time.AfterFunc(time.Minute, func() { slept = true })
		c.Advance(time.Minute + time.Millisecond)
		if !slept {
			t.Error("a timer of the test has not fired after Advance")
		}
		time.Sleep(300 * time.Microsecond) // sleeps: the clock of synctest. A part of a ms makes Advance no shorter
		before := time.Now()
		c.Advance(time.Second)
		if d := time.Since(before); d != time.Second {
			t.Errorf("Advance(1s) took %v", d)
		}
	})
}

func TestInABubbleRunOneSeesWhatBecameDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := curfewtest.New(t)
		c.Worker.HandleRaw("k", succeed)
		late := c.Enqueue(queue.Task{Kind: "k", Queue: "a", QueueTimeout: time.Minute})
		delayed := c.Enqueue(queue.Task{Kind: "k", Queue: "b", Delay: time.Minute})
		time.Sleep(time.Hour) // sleeps: the clock of synctest
		if run := c.RunOne(); run.ID != delayed.ID {
			t.Errorf("RunOne took %s, want the task whose delay is over, %s", run.ID, delayed.ID)
		}
		c.AssertTimedOut(late.ID)
		c.AssertNothingLeft()
	})
}

// A whole worker and its reaper run in a bubble.
func TestInABubbleAWorkerAndAReaperRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := curfewtest.New(t)
		c.Worker.HandleRaw("hang", hang)
		c.Worker.HandleRaw("k", succeed)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- c.Worker.Run(ctx) }()
		go func() { ended <- reaper.New(c.Queue, reaper.Config{}).Run(ctx) }()

		hangs := c.Enqueue(queue.Task{Kind: "hang", Timeout: 20 * time.Second})
		delayed := c.Enqueue(queue.Task{Kind: "k", Delay: 10 * time.Second})
		time.Sleep(21 * time.Second) // sleeps: the clock of synctest
		c.AssertTimedOut(hangs.ID)
		c.AssertStatus(delayed.ID, queue.Completed)
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestConfigsThatABubbleCannotHave(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	synctest.Test(t, func(t *testing.T) {
		for want, config := range map[string]curfewtest.Config{
			"Config.Client cannot be used in a bubble":                    {Client: client},
			"the clock cannot be set to 1999-01-01 00:00:00 +0000 UTC, b": {Start: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			if got := spied(t, config, func(*curfewtest.Stage) {}); !strings.Contains(got, want) {
				t.Errorf("New reports %q, want %q", got, want)
			}
		}
	})
}
