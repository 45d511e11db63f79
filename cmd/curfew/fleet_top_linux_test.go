package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/terminal"
	"github.com/curfew-dev/curfew/queue"
)

// topTerminal is a terminal on which top runs.
type topTerminal struct{ *terminal.Terminal }

// screen returns the newest complete frame.
func (x topTerminal) screen() string {
	frames := strings.Split(x.Shown(), "\x1b[H")
	for i := len(frames) - 1; i > 0; i-- {
		if frame, _, whole := strings.Cut(frames[i], "\x1b[J"); whole {
			return strings.ReplaceAll(frame, "\x1b[K", "")
		}
	}
	return ""
}

func (x topTerminal) awaits(t *testing.T, words ...string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the screen shows\n%s", x.screen())
		}
	}()
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
func (x topTerminal) run(ctx context.Context, args string) (ended chan int, errs *bytes.Buffer) {
	ended, errs = make(chan int, 1), &bytes.Buffer{}
	go func() {
		ended <- runWith(ctx, append([]string{"curfew"}, strings.Fields(args)...), x.Program, x.Program, errs)
	}()
	return ended, errs
}

// left checks that the terminal is as it was before.
func (x topTerminal) left(t *testing.T, before unix.Termios) {
	t.Helper()
	await.Until(t, "the screen is left", func() bool {
		return strings.HasSuffix(x.Shown(), "\x1b[?25h\x1b[?1049l")
	})
	if after := x.Mode(t); after != before {
		t.Errorf("the mode of the terminal is %+v, and was %+v", after, before)
	}
}

func TestTopFollowsANamespaceUntilQIsTyped(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 3)
	x := topTerminal{terminal.New(t, 80, 24)}
	before := x.Mode(t)
	ended, errs := x.run(t.Context(), "top --every 100ms --redis "+url)
	x.awaits(t, "curfew top", "3 in line, 0 running", "q quit")
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail", Timeout: time.Hour})
	x.awaits(t, "4 in line", "mail", "due in 1h")
	x.Type(t, "s")
	x.awaits(t, "by in line")
	x.Type(t, "p")
	x.awaits(t, "paused")
	x.Resize(t, 40, 10)
	await.Until(t, "the frame has 10 lines", func() bool { return strings.Count(x.screen(), "\r\n") == 9 })
	queuetest.Enqueue(t, q, queue.Task{Queue: "mail"})
	x.Type(t, "p")
	x.awaits(t, "5 in line")
	x.Type(t, "q")
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
	x := topTerminal{terminal.New(t, 80, 24)}
	before := x.Mode(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended, errs := x.run(ctx, "top --redis redis://"+server.Addr)
	x.awaits(t, "0 in line")
	interrupt()
	if code := await.Receive(t, ended, "top ends"); code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	x.left(t, before)

	// Redis goes away, and q still ends it.
	x = topTerminal{terminal.New(t, 80, 24)}
	before = x.Mode(t)
	ended, errs = x.run(t.Context(), "top --every 100ms --redis redis://"+server.Addr)
	x.awaits(t, "0 in line")
	server.Kill()
	x.awaits(t, "\r\n! ")
	x.Type(t, "q")
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
	s := commands(t, rdb).since(before)
	t.Logf("5,000 queues: %d commands, %d reads, %d us of Redis, %v", s.calls, s.reads, s.usec, took)
	if max(s.calls, s.reads) > 150 {
		t.Errorf("a view takes %d commands in %d reads, want at most 150", s.calls, s.reads)
	}
}
