//go:build unix

package redisproc

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestAKilledChildTakesItsOwnChildrenAlong(t *testing.T) {
	t.Parallel()
	out, in := io.Pipe()
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
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
	c.Kill()
	<-c.Done()
	if c.Succeeded() {
		t.Error("a killed child has succeeded")
	}
	if err := await("its child has ended", func() error {
		if alive(sleeper) {
			return errors.New("it lives")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAChildGetsASignal(t *testing.T) {
	t.Parallel()
	out, in := io.Pipe()
	cmd := exec.Command("sh", "-c", `trap "exit 0" TERM; echo; while :; do sleep 0.01; done`)
	cmd.Stdout = in
	c, err := Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	bufio.NewReader(out).ReadString('\n')
	if err := c.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !c.Succeeded() {
		t.Error("the child has not ended as it said")
	}
}
