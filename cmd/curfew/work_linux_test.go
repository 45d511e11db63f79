package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/programs"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
)

// If the guard is killed and then the worker, the kernel still ends the command.
func TestTheKernelEndsTheCommandOfAKilledWorker(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	p := s.start("--kind", "k", "--", "/bin/sh", "-c", `echo $$ >$DIR/pid; exec sleep 60`)
	s.enqueue(queue.Task{})
	command := s.pid("pid")
	for _, child := range await.Children(t, p.Process.Pid, 1) {
		if line, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/cmdline"); strings.Contains(string(line), programs.GuardName) {
			syscall.Kill(child, syscall.SIGKILL)
			s.gone("the guard", child)
		}
	}
	p.Process.Kill()
	await.Receive(t, p.ended, "the end of the worker")
	s.gone("the command", command)
}
