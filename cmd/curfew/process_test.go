package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
)

// commandVariable makes this test binary the command curfew.
const commandVariable = "CURFEW_TEST_COMMAND"

// itself returns the command of this test binary: it needs no build. Its environment has nothing that a terminal sets.
func itself(args string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], strings.Fields(args)...)
	cmd.Env = append(os.Environ(), commandVariable+"=1", "TERM=xterm", "NO_COLOR=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// spawn starts a process, which is killed at the end of the test. On Linux it also ends with this process.
func spawn(t *testing.T, cmd *exec.Cmd) *redisproc.Child {
	t.Helper()
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	return child
}

// invocation is a run of the command.
type invocation struct {
	args  []string
	stdin string
	gone  bool     // nobody reads its stdout
	alone bool     // in a process of its own, as users run it
	env   []string // of that process

	signal syscall.Signal // interrupts it; 0: nothing does
	when   <-chan struct{}
	said   string // the signal is also sent when stderr has this text
}

// ending is the result of an invocation.
type ending struct {
	code      int
	out, errs string
	took      time.Duration
}

// run runs the command to its end.
func (v invocation) run(t *testing.T) ending {
	t.Helper()
	var out bytes.Buffer
	var stdout io.Writer = &out
	errs := &watched{text: v.said, seen: make(chan struct{})}
	if v.gone {
		r, w, err := os.Pipe()
		if err != nil {
			t.Error(err)
			return ending{}
		}
		r.Close()
		defer w.Close()
		stdout = w
	}
	began := time.Now()
	start := v.startHere
	if v.alone {
		start = v.startAlone
	}
	code, interrupt, err := start(t, stdout, errs)
	if err != nil {
		t.Error(err)
		return ending{}
	}
	var when, said <-chan struct{}
	if v.signal != 0 {
		when, said = v.when, errs.seen
	}
	hangs := time.After(await.Patience)
	for {
		select {
		case code := <-code:
			return ending{code, out.String(), errs.String(), time.Since(began)}
		case <-when:
			interrupt()
			when, said = nil, nil
		case <-said:
			interrupt()
			when, said = nil, nil
		case <-hangs:
			t.Errorf("curfew %.300q has not ended within %v: %s", v.args, await.Patience, errs)
			return ending{code: -1}
		}
	}
}

// startHere runs the command in this process.
func (v invocation) startHere(t *testing.T, stdout io.Writer, stderr *watched) (code chan int, interrupt func(), err error) {
	ctx, interrupt := context.WithCancel(t.Context())
	code = make(chan int, 1)
	go func() {
		defer interrupt()
		code <- runWith(ctx, append([]string{"curfew"}, v.args...), strings.NewReader(v.stdin), stdout, stderr)
	}()
	return code, interrupt, nil
}

// startAlone runs the command in a process of its own.
func (v invocation) startAlone(t *testing.T, stdout io.Writer, stderr *watched) (code chan int, interrupt func(), err error) {
	cmd := itself("", v.env...)
	cmd.Args = append(cmd.Args, v.args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(v.stdin), stdout, stderr
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(child.Kill)
	code = make(chan int, 1)
	go func() {
		<-child.Done()
		code <- cmd.ProcessState.ExitCode()
	}()
	return code, func() { child.Signal(v.signal) }, nil
}

// watched is an output that tells when it has a text.
type watched struct {
	harness.Logs
	text string
	once sync.Once
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Logs.Write(p)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}
