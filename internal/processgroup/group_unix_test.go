//go:build unix

package processgroup_test

import (
	"runtime"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

func TestStopAsksTheCommand(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, g, ended := started(t, "polite")
	g.Stop()
	await.Receive(t, ended, "the end of the command")
	if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() != 7 {
		t.Errorf("%v, %v, want exit code 7", state, err)
	}
	g.Kill()
	g.Release()
}
