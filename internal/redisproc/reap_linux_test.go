package redisproc

import (
	"bufio"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prSetChildSubreaper makes a process the parent of processes below it whose parents have ended, as the first process of a
// container is.
const prSetChildSubreaper = 36

func becomeParent(t *testing.T, on uintptr) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetChildSubreaper, on, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// The first process of a container gets the children of a process that has ended. They can take long to end.
func TestKillDoesNotWaitForChildrenThatLiveOn(t *testing.T) {
	becomeParent(t, 1)
	defer becomeParent(t, 0)
	out, in := io.Pipe()
	cmd := exec.Command("sh", "-c", "sleep 60 >&- & echo $!")
	cmd.Stdout = in
	c, err := Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	sleeper, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(sleeper, syscall.SIGKILL)
	<-c.Done()
	killed := make(chan struct{})
	go func() {
		c.Kill()
		close(killed)
	}()
	select {
	case <-killed:
	case <-time.After(patience):
		t.Error("Kill waits for a child that lives on")
	}
}
