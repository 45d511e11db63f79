//go:build unix

package faults

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// stopped starts a worker process, which takes a task, and stops it (SIGSTOP) until its lease is
// lost. It returns the process, its claim and its name.
func (s *stage) stopped(line string) (c *harness.Child, held queue.Claim, name string) {
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
		t.Fatalf("the task of a stopped worker is %s, want PENDING", r.Status)
	}
	s.release(c, held.ID)
	c.Signal(s, syscall.SIGCONT)
	if said := s.answered(c); said != "accepted 1, refused 0, stopped 0" {
		t.Errorf("the worker counts %s, want one accepted", said)
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
	for claim, finishFirst := range map[string]bool{"the other worker has finished": true, "the other worker still runs it": false} {
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
			// A report of the old claim is refused. The worker itself sends a heartbeat or a report
			// first, so it is stopped or refused.
			if v := s.report(held, name); v.Word != "LOST" {
				t.Errorf("the report of the old claim is %+v, want LOST", v)
			}
			s.release(first, held.ID)
			first.Signal(s, syscall.SIGCONT)
			if said := s.answered(first); said != "accepted 0, refused 1, stopped 0" && said != "accepted 0, refused 0, stopped 1" {
				t.Errorf("the stopped worker counts %s, want one refused or stopped", said)
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

// finish lets a worker that was never stopped complete its task.
func (s *stage) finish(c *harness.Child, id string) {
	s.Helper()
	s.release(c, id)
	if said := s.answered(c); said != "accepted 1, refused 0, stopped 0" {
		s.Errorf("the worker that holds the task counts %s, want one accepted", said)
	}
}

// worksOn checks that a worker that was stopped takes tasks again, without a restart.
func (s *stage) worksOn(c *harness.Child, line string) {
	s.Helper()
	id := s.Enqueue(queue.Task{Kind: "held", Queue: line})[0]
	c.Says(s, "began "+id)
	s.release(c, id)
	if r := s.Ended(id); r.Status != queue.Completed {
		s.Errorf("the next task of the worker is %s, want COMPLETED", r.Status)
	}
}
