package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/curfew-dev/curfew/internal/await"
)

// terminal opens a pseudo-terminal: what is written to program can be read from screen, and the other way round.
func pseudoTerminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	var locked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, program
}

// A stranger runs `curfew dev`, pastes its line into a shell, sees a timeout and a wake-up, and presses Ctrl-C.
func TestTheFirstMinute(t *testing.T) {
	t.Parallel()
	screen, program := pseudoTerminal(t)
	cmd := exec.Command(built(t), "dev", "--port", "0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Close()
	shown := &lockedBuffer{}
	ended := make(chan error, 1)
	go func() {
		io.Copy(shown, screen) // ends when the program has
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { cmd.Process.Kill() })
	until := func(pattern string) []string {
		t.Helper()
		var found []string
		await.Until(t, pattern, func() bool {
			found = regexp.MustCompile(pattern).FindStringSubmatch(shown.String())
			return found != nil
		})
		return found
	}
	line := until(`Try +(redis-cli -p \d+ FCALL .*)\r\n`)[1]
	id, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", line, err, id)
	}
	until(`enqueued +hang +` + regexp.QuoteMeta(strings.TrimSpace(string(id))) + ` +deadline in 3\.0 s`)
	until(`TIMEOUT +hang .* after 3\.000 s, noticed \d+ ms late`)
	until(`woke +agent .* lag \d+ ms`)
	took := time.Since(began)
	t.Logf("a timeout and a wake-up were on screen %d ms after the start, %d ms without the timeout of 3 s", took.Milliseconds(), took.Milliseconds()-3000)
	if took > 8*time.Second { // 3.2 s on an idle machine
		t.Errorf("it took %v", took)
	}
	if _, err := screen.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	before := shown.String()
	if err := await.Receive(t, ended, "the end of dev"); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if after := strings.TrimPrefix(shown.String(), before); strings.Contains(after, "curfew:") || strings.Contains(after, "goroutine") {
		t.Errorf("at its end it prints %q", after)
	}
}
