package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// Nothing is left of a run that is interrupted, nor of a test that does not clean up.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	tally := built(t)
	for claim, hang := range map[string]string{"after an interruption": "select {}", "after the end": ""} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			dir := module(t, map[string]string{"a": `
	orphan := exec.Command("sleep", "1000")
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	os.MkdirTemp("", "left")
	os.WriteFile(os.Getenv("PID")+".new", fmt.Append(nil, orphan.Process.Pid, " ", os.TempDir()), 0o600)
	os.Rename(os.Getenv("PID")+".new", os.Getenv("PID"))
	` + hang})
			pid := filepath.Join(t.TempDir(), "pid")
			cmd := exec.Command(tally, "--", "-count", "1", "./a")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PID="+pid)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var orphan int
			var home string
			await.Until(t, "the test runs", func() bool {
				text, _ := os.ReadFile(pid)
				fmt.Sscan(string(text), &orphan, &home)
				return home != ""
			})
			want := 0
			if hang != "" {
				cmd.Process.Signal(os.Interrupt)
				want = 130
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("exit %d, want %d\n%s", code, want, out.String())
			}
			if err := syscall.Kill(orphan, 0); err == nil {
				t.Errorf("process %d is left\n%s", orphan, out.String())
				syscall.Kill(orphan, syscall.SIGKILL)
			}
			if !strings.Contains(out.String(), fmt.Sprintf("the tests left process %d: sleep 1000", orphan)) {
				t.Errorf("the output does not name the process %d\n%s", orphan, out.String())
			}
			if _, err := os.Stat(home); err == nil || !strings.Contains(home, "curfew-tests") {
				t.Errorf("the folder %s is left", home)
			}
		})
	}
}
