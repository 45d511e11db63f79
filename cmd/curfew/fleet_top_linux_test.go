package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// terminal is a pseudo-terminal: what a program writes to tty is in shown, and what is written to keys is typed.
type terminal struct {
	keys, tty *os.File
	lock      sync.Mutex
	shown     bytes.Buffer
}

func newTerminal(t *testing.T, width, height uint16) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0) // so that Close ends a Read
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{keys: master, tty: tty}
	x.resize(t, width, height)
	var reader sync.WaitGroup
	reader.Go(func() {
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			x.lock.Lock()
			x.shown.Write(b[:n])
			x.lock.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		tty.Close()
		master.Close()
		reader.Wait()
	})
	return x
}

func (x *terminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(x.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

func (x *terminal) mode(t *testing.T) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

// screen returns the newest complete frame.
func (x *terminal) screen() string {
	x.lock.Lock()
	defer x.lock.Unlock()
	frames := strings.Split(x.shown.String(), "\x1b[H")
	for i := len(frames) - 1; i > 0; i-- {
		if frame, _, whole := strings.Cut(frames[i], "\x1b[J"); whole {
			return strings.ReplaceAll(frame, "\x1b[K", "")
		}
	}
	return ""
}

func (x *terminal) awaits(t *testing.T, words ...string) {
	t.Helper()
	await.Until(t, fmt.Sprintf("the screen shows %q", words), func() bool {
		shown := x.screen()
		for _, w := range words {
			if !strings.Contains(shown, w) {
				return false
			}
		}
		return true
	})
}

// run starts the command on the terminal, and returns its exit code.
func (x *terminal) run(ctx context.Context, args string) (ended chan int, errs *bytes.Buffer) {
	ended, errs = make(chan int, 1), &bytes.Buffer{}
	go func() {
		ended <- runWith(ctx, append([]string{"curfew"}, strings.Fields(args)...), x.tty, x.tty, errs)
	}()
	return ended, errs
}

// left checks that the terminal is as it was before.
func (x *terminal) left(t *testing.T, before unix.Termios) {
	t.Helper()
	await.Until(t, "the screen is left", func() bool {
		x.lock.Lock()
		defer x.lock.Unlock()
		return strings.HasSuffix(x.shown.String(), "\x1b[?25h\x1b[?1049l")
	})
	if after := x.mode(t); after != before {
		t.Errorf("the mode of the terminal is %+v, and was %+v", after, before)
	}
}

func TestTopFollowsANamespaceUntilQIsTyped(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 3)
	x := newTerminal(t, 80, 24)
	before := x.mode(t)
	ended, errs := x.run(t.Context(), "top --every 100ms --redis "+url)
	x.awaits(t, "curfew top", "3 in line, 0 running", "q quit")
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail", Timeout: time.Hour})
	x.awaits(t, "4 in line", "mail", "due in 1h")
	x.keys.WriteString("s")
	x.awaits(t, "by in line")
	x.keys.WriteString("p")
	x.awaits(t, "paused")
	x.resize(t, 40, 10)
	await.Until(t, "the frame has 10 lines", func() bool { return strings.Count(x.screen(), "\r\n") == 9 })
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail"})
	x.keys.WriteString("p")
	x.awaits(t, "5 in line")
	x.keys.WriteString("q")
	if code := await.Receive(t, ended, "top ends"); code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	x.left(t, before)
}

// After an interrupt, and without Redis, the terminal is left as it was.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queuetest.Open(t, server.Client(t), queue.Config{})
	x := newTerminal(t, 80, 24)
	before := x.mode(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended, errs := x.run(ctx, "top --redis redis://"+server.Addr)
	x.awaits(t, "0 in line")
	interrupt()
	if code := await.Receive(t, ended, "top ends"); code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	x.left(t, before)

	// Redis goes away, and q still ends it.
	x = newTerminal(t, 80, 24)
	before = x.mode(t)
	ended, errs = x.run(t.Context(), "top --every 100ms --redis redis://"+server.Addr)
	x.awaits(t, "0 in line")
	server.Kill()
	x.keys.WriteString("q")
	if code := await.Receive(t, ended, "top ends"); code != 0 || errs.Len() > 0 {
		t.Errorf("without Redis: exit %d, %s", code, errs)
	}
	x.left(t, before)
}

func TestTopWithoutATerminalPrintsOneView(t *testing.T) {
	q, url := namespace(t, 2)
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail", Timeout: time.Hour})
	for _, args := range []string{"top", "top --once"} {
		out := expect(t, 0, "", args+" --redis "+url)
		if !strings.HasPrefix(out, "curfew top  curfew  ") || strings.Contains(out, "\x1b") || strings.Contains(out, "q quit") || row(out, "mail") != "mail 1 0 0 0 0 0 0 -" ||
			!strings.Contains(out, "next deadlines\nin ") {
			t.Errorf("%s prints\n%s", args, out)
		}
	}
	for args, want := range map[string]string{
		"top now":          `top takes no argument, and got "now"`,
		"top --every 5":    "has no unit: write 5s",
		"top --every 50ms": "--every 50ms must be from 100ms to 1h",
		"top --every 2h":   "--every 2h must be from 100ms to 1h",
		"top --evry 1s":    "(did you mean --every?)",
		"top --once=x":     "--once takes no value",
	} {
		expect(t, app.ExitUsage, want, args)
	}
}

// With 5,000 queues a view takes few calls.
func TestTheCostOfAViewIsBounded(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	manyQueues(t, queuetest.Open(t, rdb, queue.Config{}), 5000)
	before := commands(t, rdb)
	began := time.Now()
	expect(t, 0, "5,000 queues", "top --once --redis redis://"+server.Addr)
	took := time.Since(began)
	n, busy := commands(t, rdb).since(before)
	t.Logf("5,000 queues: %d commands, %d us of Redis, %v", n, busy, took)
	if n > 150 {
		t.Errorf("a view takes %d commands", n)
	}
}
