//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
)

// A worker that is killed leaves nothing behind: the kernel kills the command, and the guard what the command has
// started. The task runs in another worker when the lease is over.
func TestAKilledWorkerLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	p := s.start("--kind", "k", "--lease", "4s", "--grace", "1h", "--", "/bin/sh", "-c", stubborn)
	id := s.enqueue(queue.Task{})
	command, child := s.pid("pid"), s.pid("child")
	syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // with all that a terminal or a supervisor takes for the worker
	await.Receive(t, p.ended, "the end of the worker")
	s.gone("the command", command)
	s.gone("its child", child)
	s.start("--kind", "k", "--", "/bin/sh", "-c", "echo other $CURFEW_EPOCH $CURFEW_ATTEMPT")
	if got := s.result(id); got != "other 2 1\n" {
		t.Errorf("the result is %q, want that of the other worker, and no retry spent", got)
	}
	if r := s.record(id); r.LeaseLosses != 1 {
		t.Errorf("%d leases were lost, want 1", r.LeaseLosses)
	}
}

// A worker that is stopped loses its lease, and another worker gets the task. When the first one continues, its
// command is ended, and its result does not count.
func TestACommandEndsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	first := s.start("--kind", "k", "--lease", "1s", "--grace", "100ms", "--", "/bin/sh", "-c", stubborn)
	id := s.enqueue(queue.Task{})
	command, child := s.pid("pid"), s.pid("child")
	first.Process.Signal(syscall.SIGSTOP)
	s.start("--kind", "k", "--", "/bin/sh", "-c", "echo other")
	if got := s.result(id); got != "other\n" {
		t.Errorf("the result is %q, want that of the other worker", got)
	}
	first.Process.Signal(syscall.SIGCONT)
	s.gone("the command", command)
	s.gone("its child", child)
}
