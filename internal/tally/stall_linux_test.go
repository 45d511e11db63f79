package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/await"
)

func TestATestBinaryIsStoppedAndContinues(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperWaits$")
	cmd.Env = append(os.Environ(), "TALLY_WAITS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close() // it ends
	is := func(state string) func() bool {
		return func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(text), ") ")
			return strings.HasPrefix(rest, "T") == (state == "stopped")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan bool)
	go func() { stall(ctx, cmd.Process.Pid); close(over) }()
	await.Until(t, "it is stopped", is("stopped"))
	await.Until(t, "it continues", is("running"))
	await.Until(t, "it is stopped again", is("stopped"))
	cancel()
	await.Receive(t, over, "the end of stall")
	await.Until(t, "it continues at the end", is("running"))
}

// This test is a helper process: it waits until its input ends.
func TestHelperWaits(t *testing.T) {
	if os.Getenv("TALLY_WAITS") != "" {
		os.Stdin.Read(make([]byte, 1))
	}
}
