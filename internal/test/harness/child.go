package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const (
	roleVariable      = "CURFEW_STAGE_ROLE"
	addrVariable      = "CURFEW_STAGE_ADDR"
	namespaceVariable = "CURFEW_STAGE_NAMESPACE"
)

// Child is a process that runs this test binary in a role. It can be killed and stopped.
type Child struct {
	// Lines receives the lines of its standard output.
	Lines chan string
	// Gone is closed when the process has ended and all its output is in Lines.
	Gone  chan struct{}
	cmd   *exec.Cmd
	stdin io.Closer // the end of the pipe in this process
}

// Spawn starts a child in a role. The end of the test kills it. It also ends when this process
// ends, since its standard input is a pipe from this process. more is added to its environment.
func (s *Stage) Spawn(role string, more ...string) *Child {
	s.Helper()
	c := &Child{Lines: make(chan string, 10_000), Gone: make(chan struct{}), cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, addrVariable+"="+s.Addr, namespaceVariable+"="+s.Q.Namespace())
	c.cmd.Env = append(c.cmd.Env, more...)
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	c.stdin = stdin
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(c.Gone)
		for in := bufio.NewScanner(out); in.Scan(); {
			c.Lines <- in.Text()
		}
		c.cmd.Wait()
	}()
	s.Cleanup(c.Kill)
	return c
}

// Kill kills the process (SIGKILL), as a crash would, and returns when it has ended.
func (c *Child) Kill() {
	c.cmd.Process.Kill()
	<-c.Gone
}

// Signal sends a signal to the process.
func (c *Child) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

// Pid returns the id of the process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Says waits for a line of output that begins with begin, and returns it.
func (c *Child) Says(tb testing.TB, begin string) string {
	tb.Helper()
	for {
		if line := await.Receive(tb, c.Lines, "a line from the child that begins with "+begin); strings.HasPrefix(line, begin) {
			return line
		}
	}
}

// Main is the TestMain of a test binary that uses stages. In a child that Spawn started it
// calls play with the role, a client and a queue, and runs no test.
func Main(m *testing.M, play func(role string, rdb *redis.Client, q *queue.Queue)) {
	redis.SetLogger(silent{}) // it logs each connection that these tests cut
	if role := os.Getenv(roleVariable); role != "" {
		go endWithParent()
		rdb, q, err := openAsChild()
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		play(role, rdb, q)
		return
	}
	redistest.Main(m)
}

// endWithParent ends this process when its parent has ended.
func endWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// openAsChild opens the namespace of the stage that spawned this process.
func openAsChild() (*redis.Client, *queue.Queue, error) {
	rdb := newClient(os.Getenv(addrVariable))
	q, err := queue.Open(context.Background(), rdb, queue.Config{Namespace: os.Getenv(namespaceVariable),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	return rdb, q, err
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
