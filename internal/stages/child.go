package stages

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

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const (
	roleVariable      = "CURFEW_STAGE_ROLE"
	addrVariable      = "CURFEW_STAGE_ADDR"
	namespaceVariable = "CURFEW_STAGE_NAMESPACE"
)

// Child is this test binary again, as a process of its own that plays a role and can be
// killed and stopped.
type Child struct {
	// Lines is what it says on its standard output.
	Lines chan string
	// Gone is closed when it has ended, and all that it said is in Lines.
	Gone chan struct{}
	cmd  *exec.Cmd
}

// Spawn starts a child in a role. It is killed when the test ends; and it ends by itself
// when this process does, since its standard input is a pipe from here. more is for its
// environment.
func (s *Stage) Spawn(role string, more ...string) *Child {
	s.Helper()
	c := &Child{Lines: make(chan string, 10_000), Gone: make(chan struct{}), cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, addrVariable+"="+s.Addr, namespaceVariable+"="+s.Q.Namespace())
	c.cmd.Env = append(c.cmd.Env, more...)
	c.cmd.Stderr = os.Stderr
	if _, err := c.cmd.StdinPipe(); err != nil {
		s.Fatal(err)
	}
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

// Kill ends it as a crash would (SIGKILL), and returns when it is gone.
func (c *Child) Kill() {
	c.cmd.Process.Kill()
	<-c.Gone
}

// Signal sends it a signal.
func (c *Child) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

// Pid is its process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Says waits until it says something that begins so.
func (c *Child) Says(tb testing.TB, begin string) string {
	tb.Helper()
	for {
		if line := await.Receive(tb, c.Lines, "the child says "+begin); strings.HasPrefix(line, begin) {
			return line
		}
	}
}

// Main is the main function of a test binary whose tests have a stage. In a child that
// Spawn started it plays its role, with a client and a queue of its own, and runs no test.
func Main(m *testing.M, play func(role string, rdb *redis.Client, q *queue.Queue)) {
	redis.SetLogger(silent{}) // it tells each connection that these tests cut
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

// endWithParent ends this process when the one that started it has ended.
func endWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// openAsChild opens the namespace of the stage that started this process.
func openAsChild() (*redis.Client, *queue.Queue, error) {
	rdb := newClient(os.Getenv(addrVariable))
	q, err := queue.Open(context.Background(), rdb, queue.Config{Namespace: os.Getenv(namespaceVariable),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	return rdb, q, err
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
