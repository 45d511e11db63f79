package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestATestBinaryAndItsServersAreStoppedAndContinue(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperWaits$")
	cmd.Env = append(os.Environ(), "TALLY_WAITS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close() // it ends
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	is := func(pid int, state string) func() bool {
		return func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
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
	both := []int{cmd.Process.Pid, server}
	for _, pid := range both {
		await.Until(t, "it is stopped", is(pid, "stopped"))
		await.Until(t, "it continues", is(pid, "running"))
		await.Until(t, "it is stopped again", is(pid, "stopped"))
	}
	cancel()
	await.Receive(t, over, "the end of stall")
	for _, pid := range both {
		await.Until(t, "it continues at the end", is(pid, "running"))
	}
}

// This test is a helper process: it starts a server, prints its process id, and waits until its input ends.
func TestHelperWaits(t *testing.T) {
	if os.Getenv("TALLY_WAITS") != "" {
		fmt.Println(redistest.Start(t).Pid())
		os.Stdin.Read(make([]byte, 1))
	}
}
