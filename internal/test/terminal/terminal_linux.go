package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// Terminal is a pseudo-terminal. It keeps all that programs have written to it.
type Terminal struct {
	// Program is the side of a program: its input and its output.
	Program *os.File

	person *os.File // the other side
	closed chan struct{}

	mu    sync.Mutex // guards shown
	shown bytes.Buffer
}

// New returns a terminal of a size. It is closed when the test ends.
func New(t testing.TB, width, height uint16) *Terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // so that Close ends a Read
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{person: os.NewFile(uintptr(fd), "ptmx"), closed: make(chan struct{})}
	t.Cleanup(func() { x.person.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if x.Program, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	x.Resize(t, width, height)
	go x.read()
	t.Cleanup(func() {
		x.Program.Close()
		x.person.Close()
		<-x.closed
	})
	return x
}

// read keeps what programs write, until no program has the terminal open or the test closes it.
func (x *Terminal) read() {
	defer close(x.closed)
	for b := make([]byte, 4096); ; {
		n, err := x.person.Read(b)
		x.mu.Lock()
		x.shown.Write(b[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Shown returns all that was written to the terminal.
func (x *Terminal) Shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.String()
}

// Await waits until what was written matches a pattern, and returns the match and its groups. It fails at once if the program ends
// before.
func (x *Terminal) Await(t testing.TB, pattern string) []string {
	t.Helper()
	var found []string
	ended := false
	await.Until(t, fmt.Sprintf("the terminal shows %q", pattern), func() bool {
		select {
		case <-x.closed:
			ended = true
		default:
		}
		found = regexp.MustCompile(pattern).FindStringSubmatch(x.Shown())
		return found != nil || ended
	})
	if found == nil {
		t.Fatalf("the program has ended, and the terminal does not show %q:\n%s", pattern, x.Shown())
	}
	return found
}

// CtrlC is typed to interrupt the program that has the terminal.
const CtrlC = "\x03"

// Type types keys.
func (x *Terminal) Type(t testing.TB, keys string) {
	t.Helper()
	if _, err := x.person.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// Resize changes the size. It also sends SIGWINCH to the program that has the terminal.
func (x *Terminal) Resize(t testing.TB, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(x.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// Mode returns how the terminal treats keys and output.
func (x *Terminal) Mode(t testing.TB) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(x.person.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

// Process is a program on a terminal.
type Process struct {
	*exec.Cmd
	ended chan error
}

// Start starts a program that has the terminal, as one that a person starts in a shell. It is killed when the test ends. No other
// program can use the terminal after that.
func (x *Terminal) Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Program, x.Program, x.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.Program.Close() // now the end of the program, and of those that it has started, ends the output
	p := &Process{Cmd: cmd, ended: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		<-x.closed
		p.ended <- err
	}()
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return p
}

// Wait waits until the program and all that it has started on the terminal have ended and everything is shown. It returns the exit code.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	await.Receive(t, p.ended, "the end of the program on the terminal, and of those that it has started")
	return p.ProcessState.ExitCode()
}
