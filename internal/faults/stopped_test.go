package faults

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// stopped is a worker process that took a task, was stopped (SIGSTOP) until its
// lease was over, and has not noticed yet. It returns the claim too.
func (s *stage) stopped(line string) (c *stages.Child, held queue.Claim, name string) {
	s.Helper()
	c = s.spawn(line, shortest)
	id := s.Enqueue(queue.Task{Kind: "held", Queue: line})[0]
	c.Says(s, "began "+id)
	r := s.Record(id)
	c.Signal(s, syscall.SIGSTOP)
	await.Until(s.T, "its lease is lost", func() bool { return s.Record(id).LeaseLosses == 1 })
	return c, queue.Claim{ID: id, Epoch: r.Epoch}, r.Worker
}

func TestAWorkerThatWasStoppedMayStillSettleWhatNobodyTook(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	s.Reap(reaper.Config{})
	c, held, _ := s.stopped("lonely")
	if r := s.Record(held.ID); r.Status != queue.Pending {
		t.Fatalf("what a stopped worker held is %s", r.Status)
	}
	s.release(c, held.ID)
	c.Signal(s, syscall.SIGCONT)
	if said := s.answered(c); said != "accepted 1, refused 0, stopped 0" {
		t.Errorf("it was told: %s", said)
	}
	if r, want := s.Ended(held.ID), fmt.Sprint("by ", c.Pid()); string(r.Result) != want || r.Epoch != 1 || r.LeaseLosses != 1 {
		t.Errorf("the task has the result %q of claim %d after %d lost leases, want %q of claim 1", r.Result, r.Epoch, r.LeaseLosses, want)
	}
	s.worksOn(c, "lonely")
	s.drained()
	s.account(nothing)
}

func TestAWorkerThatWasStoppedCannotSettleWhatAnotherTook(t *testing.T) {
	t.Parallel()
	for claim, finishFirst := range map[string]bool{"and has finished": true, "and is still at": false} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			s := newStage(t, server.Addr, server.Addr)
			s.Reap(reaper.Config{})
			first, held, name := s.stopped("shared")
			second := s.spawn("shared", time.Minute)
			second.Says(s, "began "+held.ID)
			if finishFirst {
				s.finish(second, held.ID)
			}
			// What it would say if it did not ask first is refused; it asks, and is stopped, or is refused.
			if v := s.report(held, name); v.Word != "LOST" {
				t.Errorf("the older claim was settled as %+v", v)
			}
			s.release(first, held.ID)
			first.Signal(s, syscall.SIGCONT)
			if said := s.answered(first); said != "accepted 0, refused 1, stopped 0" && said != "accepted 0, refused 0, stopped 1" {
				t.Errorf("the first was told: %s", said)
			}
			if !finishFirst {
				if r := s.Record(held.ID); r.Status != queue.Running || r.Epoch != 2 {
					t.Errorf("after the refusal the task is %s by claim %d, want RUNNING by claim 2", r.Status, r.Epoch)
				}
				s.finish(second, held.ID)
			}
			if r, want := s.Ended(held.ID), fmt.Sprint("by ", second.Pid()); string(r.Result) != want || r.Epoch != 2 {
				t.Errorf("the task has the result %q of claim %d, want %q of claim 2", r.Result, r.Epoch, want)
			}
			second.Kill()
			s.worksOn(first, "shared")
			s.drained()
			s.account(nothing)
		})
	}
}

// finish lets a child that was never stopped finish a task.
func (s *stage) finish(c *stages.Child, id string) {
	s.Helper()
	s.release(c, id)
	if said := s.answered(c); said != "accepted 1, refused 0, stopped 0" {
		s.Errorf("the one that holds the task was told: %s", said)
	}
}

// worksOn: a child that was cut off takes work again, without a restart.
func (s *stage) worksOn(c *stages.Child, line string) {
	s.Helper()
	id := s.Enqueue(queue.Task{Kind: "held", Queue: line})[0]
	c.Says(s, "began "+id)
	s.release(c, id)
	if r := s.Ended(id); r.Status != queue.Completed {
		s.Errorf("after it went on, a task is %s", r.Status)
	}
}
