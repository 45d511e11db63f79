package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
)

// An interrupted comparison ends its redis-server and its worker processes, and removes its
// folder.
func TestInterruptedComparisonLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim    string
		signal   syscall.Signal
		args     string
		children int // with the redis-server
	}{
		{"recovery, while its workers wait to be killed", syscall.SIGINT, "recovery --vs asynq --kills 2", 3},
		{"throughput", syscall.SIGTERM, "throughput --vs asynq --tasks 200000", 1},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			cmd := exec.Command(os.Args[0], strings.Fields(test.args)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+folder, commandVariable+"=1")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			children := await.Children(t, cmd.Process.Pid, test.children)
			cmd.Process.Signal(test.signal)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != app.ExitInterrupted || out.Len() > 0 || !strings.Contains(errs.String(), "interrupted") {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out.String(), errs.String())
			}
			for _, pid := range children {
				if syscall.Kill(pid, 0) == nil && !zombie(pid) {
					t.Errorf("process %d is still there", pid)
				}
			}
			if left, _ := os.ReadDir(folder); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

// zombie reports whether a process has ended and its parent has not read its status yet.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(text), ") Z ")
}
