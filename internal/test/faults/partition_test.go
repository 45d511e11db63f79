package faults

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// cutOff is a worker behind a link that has dropped everything for longer than the worker's lease.
type cutOff struct {
	*stage
	link    *faultproxy.Proxy
	worker  *worker.Worker
	id      string // of the worker's task
	began   chan string
	release chan struct{}
}

func newCutOff(t *testing.T) *cutOff {
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	c := &cutOff{stage: s, link: faultproxy.Start(t, server.Addr), began: make(chan string, 10), release: make(chan struct{}, 10)}
	s.Reap(reaper.Config{})
	// It has one slot, so that it cannot fetch its own task again.
	c.worker = worker.New(s.AnotherAt(c.link.Addr), worker.Config{Concurrency: 1, Lease: time.Second})
	s.work(c.worker, map[string]worker.Handler{"k": func(ctx context.Context, _ []byte) ([]byte, error) {
		c.began <- worker.Info(ctx).ID
		<-c.release
		return []byte("by the disconnected worker"), nil
	}})
	c.id = s.Enqueue(queue.Task{Kind: "k"})[0]
	await.Receive(t, c.began, "the worker begins its task")
	c.link.Partition(true)
	await.Until(t, "its lease is lost", func() bool { return s.Record(c.id).LeaseLosses == 1 })
	return c
}

// heal restores the link, and checks that the worker takes tasks again.
func (c *cutOff) heal() {
	c.Helper()
	c.link.Partition(false)
	back := time.Now()
	next := c.Enqueue(queue.Task{Kind: "k"})[0]
	if got := await.Receive(c.T, c.began, "the worker begins the next task"); got != next {
		c.Errorf("the worker took %s, want %s", got, next)
	}
	c.Logf("the worker took a task %v after the link was restored", time.Since(back).Round(time.Millisecond))
	c.release <- struct{}{}
	if r := c.Ended(next); r.Status != queue.Completed {
		c.Errorf("the next task of the worker is %s, want COMPLETED", r.Status)
	}
}

func TestALateOutcomeCountsIfNobodyTookTheTask(t *testing.T) {
	t.Parallel()
	c := newCutOff(t)
	c.release <- struct{}{}
	c.heal()
	if r := c.Ended(c.id); string(r.Result) != "by the disconnected worker" || r.Epoch != 1 {
		t.Errorf("the task has the result %q of claim %d, want that of claim 1", r.Result, r.Epoch)
	}
	await.Until(t, "the worker counts 2 completed", func() bool { return c.worker.Stats().Completed == 2 }) // once it has the reply
	if stats := c.worker.Stats(); stats.Refused+stats.Dropped != 0 {
		t.Errorf("the worker counts %+v, want none refused or dropped", stats)
	}
	c.drained()
	c.account(nothing)
}

func TestALateOutcomeIsRefusedIfAnotherTookTheTask(t *testing.T) {
	t.Parallel()
	for claim, finishFirst := range map[string]bool{"the other worker has finished": true, "the other worker still runs it": false} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c := newCutOff(t)
			began, release := make(chan string, 1), make(chan struct{})
			other := worker.New(c.Another(), worker.Config{Concurrency: 1})
			stop := c.work(other, map[string]worker.Handler{"k": func(ctx context.Context, _ []byte) ([]byte, error) {
				began <- worker.Info(ctx).ID
				<-release
				return []byte("by the other worker"), nil
			}})
			if got := await.Receive(t, began, "the other worker begins a task"); got != c.id {
				t.Fatalf("the other worker began %s, want %s", got, c.id)
			}
			finish := func() {
				close(release)
				c.Ended(c.id)
				stop()
			}
			if finishFirst {
				finish()
			}
			c.release <- struct{}{}
			// The worker cannot report the outcome until the link is restored.
			await.Until(t, "the handler has returned", func() bool { return c.worker.Stats().Running == 0 })
			if !finishFirst {
				c.link.Partition(false)
				await.Until(t, "the late outcome is refused", func() bool { return c.worker.Stats().Refused == 1 })
				if r := c.Record(c.id); r.Status != queue.Running || r.Epoch != 2 {
					t.Errorf("after the refusal the task is %s by claim %d, want RUNNING by claim 2", r.Status, r.Epoch)
				}
				finish()
			}
			c.heal()
			if r := c.Record(c.id); string(r.Result) != "by the other worker" || r.Epoch != 2 {
				t.Errorf("the task has the result %q of claim %d", r.Result, r.Epoch)
			}
			await.Until(t, "the disconnected worker counts 1 completed and 1 refused", func() bool { // once it has the reply
				stats := c.worker.Stats()
				return stats.Completed == 1 && stats.Refused == 1
			})
			c.drained()
			c.account(nothing)
		})
	}
}
