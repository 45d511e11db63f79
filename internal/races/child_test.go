package races

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

const (
	roleVariable      = "CURFEW_RACES_ROLE"
	addrVariable      = "CURFEW_RACES_ADDR"
	namespaceVariable = "CURFEW_RACES_NAMESPACE"
)

// child is this test binary again, as a process of its own that can be killed.
type child struct {
	lines chan string // what it says
	cmd   *exec.Cmd
	gone  chan struct{}
}

// spawn starts a child in a role. It is killed when the test ends; and it ends by
// itself when this process does, since its standard input is a pipe from here. more is
// for its environment.
func (s *stage) spawn(role string, more ...string) *child {
	s.Helper()
	c := &child{lines: make(chan string, 10_000), gone: make(chan struct{}), cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, addrVariable+"="+s.addr, namespaceVariable+"="+s.q.Namespace())
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
		defer close(c.gone)
		for in := bufio.NewScanner(out); in.Scan(); {
			c.lines <- in.Text()
		}
		c.cmd.Wait()
	}()
	s.Cleanup(c.kill)
	return c
}

// kill ends it as a crash would (SIGKILL), and returns when it is gone.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.gone
}

// playChild is the life of a child.
func playChild(role string) {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(addrVariable), ContextTimeoutEnabled: true})
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: os.Getenv(namespaceVariable),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	switch role {
	case "reaper":
		swept := sync.OnceFunc(func() { fmt.Println("swept") })
		turn := sync.OnceFunc(func() { fmt.Println("turn") })
		reaper.New(q, reaper.Config{Observe: func(_ int, s reaper.Swept) {
			swept()
			if s.Turn {
				turn()
			}
		}}).Run(ctx)
	case "worker":
		w := worker.New(q, worker.Config{Concurrency: 20, Lease: time.Second})
		w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			fmt.Println("began", worker.Info(ctx).ID)
			select {} // the process is going to be killed
		})
		w.Run(ctx)
	default:
		playAgents(ctx, role, rdb, q)
	}
}
