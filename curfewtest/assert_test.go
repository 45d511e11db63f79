package curfewtest_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

var (
	idPattern = regexp.MustCompile(`0-[0-9A-Z]{18}`)
	fails     = func(err error) worker.Handler { return raw(func(context.Context) error { return err }) }
)

// Each failure is a sentence that says in which state the task is, why, and what to do.
func TestFailuresAreSentences(t *testing.T) {
	for _, test := range []struct {
		claim string
		test  func(c *curfewtest.Stage)
		want  string
	}{
		{"assertions that hold report nothing", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", succeed)
			id := c.Enqueue(task("k")).ID
			c.AssertEnqueued("k", func(r *queue.Record) bool { return r.ID == id })
			c.RunOne()
			c.AssertStatus(id, queue.Completed)
			c.MustComplete(id)
			late := c.Enqueue(queue.Task{Kind: "k", Timeout: time.Second}).ID
			c.Advance(time.Minute)
			c.AssertTimedOut(late)
			c.AssertNothingLeft()
		}, ""},
		{"a ready task", func(c *curfewtest.Stage) {
			c.MustComplete(c.Enqueue(queue.Task{Kind: "k", Queue: "mail", Timeout: time.Minute}).ID)
		}, `fatal: Task ID of kind "k" is PENDING, not COMPLETED: it is ready in queue "mail"; its deadline is in 1m0s.`},
		{"a task that waits for its next attempt", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", fails(worker.RetryAfter(30*time.Second, errors.New("503"))))
			id := c.Enqueue(queue.Task{Kind: "k", MaxRetries: 3, Timeout: time.Minute}).ID
			c.RunOne()
			c.AssertStatus(id, queue.Completed)
		}, `error: Task ID of kind "k" is PENDING, not COMPLETED: it can start in 30s; 1 of 4 attempts failed, the last with "503"; its deadline is in 1m0s.`},
		{"a failed task", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", fails(worker.Fail(3, errors.New("no such page"))))
			id := c.Enqueue(task("k")).ID
			c.RunOne()
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: "no such page" (in attempt 1 of 1, exit code 3).`},
		{"a discarded task", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", fails(worker.Discard(errors.New("bad page"))))
			id := c.Enqueue(queue.Task{Kind: "k", MaxRetries: 3}).ID
			c.RunOne()
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: "bad page" (declared permanent in attempt 1 of 4).`},
		{"no time for a retry", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", fails(worker.RetryAfter(time.Hour, errors.New("503"))))
			id := c.Enqueue(queue.Task{Kind: "k", MaxRetries: 3, Timeout: time.Minute}).ID
			c.RunOne()
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: "503" (in attempt 1 of 4, and there was no time for another before its deadline).`},
		{"a panic is shown without its stack", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", raw(func(context.Context) error { panic("boom") }))
			id := c.Enqueue(task("k")).ID
			c.RunOne()
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: "panic: boom" (in attempt 1 of 1).`},
		{"a task that ran out of time", func(c *curfewtest.Stage) {
			id := c.Enqueue(queue.Task{Kind: "k", Timeout: time.Minute}).ID
			c.Advance(time.Hour)
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: its deadline passed 59m0s ago.`},
		{"a task that was in line too long", func(c *curfewtest.Stage) {
			id := c.Enqueue(queue.Task{Kind: "k", QueueTimeout: time.Minute}).ID
			c.Advance(time.Hour)
			c.MustComplete(id)
		}, `fatal: Task ID of kind "k" is FAILED, not COMPLETED: the limit of its line passed 59m0s ago.`},
		{"a task that did not run out of time", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", succeed)
			id := c.Enqueue(task("k")).ID
			c.RunOne()
			c.AssertTimedOut(id)
		}, `error: Task ID of kind "k" is COMPLETED, not timed out: its result is "done".`},
		{"a cancelled task", func(c *curfewtest.Stage) {
			id := c.Enqueue(task("k")).ID
			c.Queue.Cancel(context.Background(), id, "not needed")
			c.AssertTimedOut(id)
		}, `error: Task ID of kind "k" is CANCELLED, not timed out: the reason is "not needed".`},
		{"a running task", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", raw(func(ctx context.Context) error {
				c.Advance(time.Second)
				c.AssertStatus(worker.Info(ctx).ID, queue.Completed)
				return nil
			}))
			c.Enqueue(task("k"))
			c.RunOne()
		}, `error: Task ID of kind "k" is RUNNING, not COMPLETED: attempt 1 began 1s ago and has not been reported.`},
		{"no such task", func(c *curfewtest.Stage) { c.Get("0-0123456789ABCDEFGH") },
			"fatal: There is no task ID: the id is wrong, or its record was removed after its retention (by default 15 min after COMPLETED, 7 days after FAILED or CANCELLED; Task.Retention sets it)."},
		{"a bad task", func(c *curfewtest.Stage) { c.Enqueue(queue.Task{Kind: "k", Priority: 7}) },
			`fatal: Enqueue of a task of kind "k": enqueue: priority 7 must be 0, 1, 2 or 3 (3 goes first)`},

		{"nothing was enqueued", func(c *curfewtest.Stage) { c.AssertEnqueued("mail") },
			`error: There is no task of kind "mail". No task was enqueued.`},
		{"other kinds were enqueued", func(c *curfewtest.Stage) {
			c.Enqueue(task("a"))
			c.Enqueue(task("a"))
			c.Enqueue(task("b"))
			c.AssertEnqueued("mail")
		}, `error: There is no task of kind "mail". There are 2 of kind "a", 1 of kind "b".`},
		{"all records were removed", func(c *curfewtest.Stage) {
			removeOne(c)
			c.AssertEnqueued("k")
		}, `error: There is no task of kind "k". No record is left: records are removed after their retention.`},
		{"one record was removed", func(c *curfewtest.Stage) {
			removeOne(c)
			c.Enqueue(task("a"))
			c.AssertEnqueued("k")
		}, `error: There is no task of kind "k". There are 1 of kind "a". 1 record was removed: records are removed after their retention.`},
		{"nothing to run, and all records were removed", func(c *curfewtest.Stage) {
			removeOne(c)
			c.RunOne()
		}, "fatal: RunOne: no task is ready. No record is left: records are removed after their retention."},
		{"none matches", func(c *curfewtest.Stage) {
			c.Enqueue(queue.Task{Kind: "mail", Payload: []byte(`{"to":"me"}`)})
			c.Enqueue(queue.Task{Kind: "mail", Headers: map[string]string{"tenant": "7"}})
			yes, no := func(*queue.Record) bool { return true }, func(*queue.Record) bool { return false }
			c.AssertEnqueued("mail", yes, no)
		}, `error: Of 2 tasks of kind "mail" none matches:
	ID in queue "default" with payload "{\"to\":\"me\"}"
	ID in queue "default" with payload "" and headers map[tenant:7]`},
		{"tasks are left", func(c *curfewtest.Stage) {
			c.Enqueue(queue.Task{Kind: "a", Delay: time.Minute})
			c.Enqueue(task("b"))
			c.AssertNothingLeft()
		}, `error: 2 tasks are left:
	Task ID of kind "a" is PENDING: it can start in 1m0s.
	Task ID of kind "b" is PENDING: it is ready in queue "default".`},
		{"many tasks are left", func(c *curfewtest.Stage) {
			for range 12 {
				c.Enqueue(task("a"))
			}
			c.AssertNothingLeft()
		}, `error: 12 tasks are left:` + repeated("\n\t"+`Task ID of kind "a" is PENDING: it is ready in queue "default".`, 10) + "\n\tand 2 more"},

		{"nothing to run", func(c *curfewtest.Stage) { c.RunOne() },
			"fatal: RunOne: no task is ready. No task was enqueued."},
		{"nothing to run any more", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", succeed)
			c.Enqueue(task("k"))
			c.RunOne()
			c.RunOne()
		}, `fatal: RunOne: no task is ready. All tasks have ended. There are 1 of kind "k".`},
		{"nothing to run yet", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("k", succeed)
			c.Enqueue(queue.Task{Kind: "k", Delay: time.Minute})
			c.RunOne()
		}, `fatal: RunOne: no task is ready. 1 task has not ended:
	Task ID of kind "k" is PENDING: it can start in 1m0s.
Move the clock with Advance, or call DrainAll, which moves it to each start.`},
		{"nothing to run in these queues", func(c *curfewtest.Stage) {
			c.Worker = worker.New(c.Queue, worker.Config{})
			c.Worker.HandleRaw("k", succeed)
			c.Enqueue(queue.Task{Kind: "k", Queue: "mail"})
			c.RunOne()
		}, `fatal: RunOne: no task is ready. 1 task has not ended:
	Task ID of kind "k" is PENDING: it is ready in queue "mail".
A task is ready and was not handed out: its queue is paused or at its limit, or the worker does not take from that queue.`},
		{"a kind without a handler", func(c *curfewtest.Stage) {
			c.Worker.HandleRaw("render", succeed)
			c.Worker.HandleRaw("fetch", succeed)
			c.Enqueue(task("mail"))
			c.RunOne()
		}, `fatal: RunOne: worker: task ID has kind "mail", and only these kinds have a handler here: fetch, render; register one with worker.Handle`},
		{"no handler at all", func(c *curfewtest.Stage) {
			c.Enqueue(task("mail"))
			c.Drain()
		}, "fatal: Drain: worker: no handler is registered: call worker.Handle before Run"},
		{"a promise", func(c *curfewtest.Stage) {
			c.Enqueue(queue.Task{Kind: "approval", Promise: true, Timeout: time.Minute})
			c.Enqueue(queue.Task{Kind: "nap", Timer: true, Delay: time.Hour})
			c.AssertNothingLeft()
		}, `error: 2 tasks are left:
	Task ID of kind "approval" is PENDING: it is a promise, which Queue.Resolve or Reject settles; its deadline is in 1m0s.
	Task ID of kind "nap" is PENDING: it is a timer, due in 1h0m0s.`},
		{"a clock beyond its end", func(c *curfewtest.Stage) {
			c.Enqueue(queue.Task{Kind: "k", StartAt: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)})
			c.Worker.HandleRaw("k", succeed)
			c.DrainAll()
		}, `fatal: The clock cannot go to 2300-01-01 00:00:00 +0000 UTC: the last year that it supports is 2262.`},
		{"a clock that goes back", func(c *curfewtest.Stage) { c.Advance(-time.Second) },
			"fatal: Advance(-1s): the clock cannot go back"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			if said := idPattern.ReplaceAllString(spied(t, curfewtest.Config{}, test.test), "ID"); said != test.want {
				t.Errorf("the stage reported\n%s\nwant\n%s", said, test.want)
			}
		})
	}
}

// removeOne lets a task complete, and moves the clock beyond its retention.
func removeOne(c *curfewtest.Stage) {
	c.Worker.HandleRaw("k", succeed)
	c.Enqueue(task("k"))
	c.Drain()
	c.Advance(time.Hour)
}

func repeated(s string, n int) (all string) {
	for range n {
		all += s
	}
	return all
}

func TestNewRefusesTwoConfigs(t *testing.T) {
	said := make(chan string)
	go func() {
		s := &spy{TB: t}
		defer func() { said <- s.said[0] }()
		curfewtest.New(s, curfewtest.Config{}, curfewtest.Config{})
	}()
	if got, want := <-said, "fatal: curfewtest: New takes one Config, not 2"; got != want {
		t.Errorf("New reported %q, want %q", got, want)
	}
}
