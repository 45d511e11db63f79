package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/internal/await"
)

// An interrupted comparison ends its redis-server and its worker processes, and removes its
// folder. The test builds the command and sends it a signal.
func TestInterruptedComparisonLeavesNothing(t *testing.T) {
	t.Parallel()
	program := built(t)
	for _, test := range []struct {
		claim    string
		signal   syscall.Signal
		args     string
		children int // with the redis-server
	}{
		{"recovery, while its workers wait to be killed", syscall.SIGINT, "bench recovery --vs asynq --kills 2", 3},
		{"throughput", syscall.SIGTERM, "bench throughput --vs asynq --tasks 200000", 1},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			cmd := exec.Command(program, strings.Fields(test.args)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+folder)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			children := awaitChildren(t, cmd.Process.Pid, test.children)
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

// awaitChildren waits until a process has at least n children, and returns their ids.
func awaitChildren(t *testing.T, pid, n int) []int {
	t.Helper()
	var children []int
	await.Until(t, fmt.Sprintf("process %d has %d children", pid, n), func() bool {
		children = childrenOf(pid)
		return len(children) >= n
	})
	return children
}

// childrenOf returns the processes whose parent is pid. The parent is the second word after
// the name in /proc/<pid>/stat.
func childrenOf(pid int) (children []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children = append(children, child)
		}
	}
	return children
}

// zombie reports whether a process has ended and its parent has not read its status yet.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(text), ") Z ")
}
