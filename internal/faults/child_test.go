package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const (
	roleVariable      = "CURFEW_FAULTS_ROLE" // the queue that a child works on
	addrVariable      = "CURFEW_FAULTS_ADDR"
	namespaceVariable = "CURFEW_FAULTS_NAMESPACE"
	leaseVariable     = "CURFEW_FAULTS_LEASE"
)

// shortest is the shortest lease that there is.
const shortest = time.Second

// child is this test binary again, as a worker process of its own that can be
// killed and stopped.
type child struct {
	lines chan string // what it says
	cmd   *exec.Cmd
	gone  chan struct{}
}

// spawn starts a worker on a queue. It is killed when the test ends; and it ends by
// itself when this process does, since its standard input is a pipe from here.
func (s *stage) spawn(line string, lease time.Duration) *child {
	s.Helper()
	c := &child{lines: make(chan string, 1000), gone: make(chan struct{}), cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+line, addrVariable+"="+s.addr, namespaceVariable+"="+s.q.Namespace(),
		leaseVariable+"="+lease.String())
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

// says waits until a child says something that begins so.
func (s *stage) says(c *child, begin string) string {
	s.Helper()
	for {
		if line := receive(s.T, c.lines, "the child says "+begin); strings.HasPrefix(line, begin) {
			return line
		}
	}
}

// playChild is the life of a child.
func playChild(line string) {
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
	lease, _ := time.ParseDuration(os.Getenv(leaseVariable))
	config := worker.Config{Concurrency: 20, Lease: lease, Queues: map[string]int{line: 1}}
	if line != "crowd" {
		config.Concurrency = 1 // so that it cannot take its own task again
	}
	w := worker.New(q, config)
	w.HandleRaw("crowd", func(context.Context, []byte) ([]byte, error) {
		pass(time.Duration(rand.IntN(80)) * time.Millisecond) // sleeps: the work
		return nil, nil
	})
	w.HandleRaw("held", func(ctx context.Context, _ []byte) ([]byte, error) {
		id := worker.Info(ctx).ID
		fmt.Println("began", id)
		rdb.BLPop(context.Background(), time.Minute, releaseKey(id, os.Getpid()))
		fmt.Println("returns", id)
		return fmt.Append(nil, "by ", os.Getpid()), nil
	})
	go tellCounts(w)
	w.Run(ctx)
}

// nothingYet is what a child says of its outcomes before there is one.
const nothingYet = "accepted 0, refused 0, stopped 0"

// tellCounts says each change of what Redis answered to a worker.
func tellCounts(w *worker.Worker) {
	for last := nothingYet; ; pass(10 * time.Millisecond) { // sleeps: the counts tell nobody
		c := w.Stats()
		if now := fmt.Sprintf("accepted %d, refused %d, stopped %d", c.Completed, c.Refused, c.Stopped); now != last {
			last = now
			fmt.Println(now)
		}
	}
}

// answered waits until a child's handler has returned and it knows what became of
// that, and returns what it says of it.
func (s *stage) answered(c *child) (counts string) {
	s.Helper()
	for returned := false; !returned || counts == ""; {
		line := receive(s.T, c.lines, "the handler returns and its outcome is known")
		returned = returned || strings.HasPrefix(line, "returns ")
		if strings.HasPrefix(line, "accepted ") {
			counts = line
		}
	}
	return counts
}

// releaseKey is a list: what is pushed to it lets a held task's handler in that
// process return.
func releaseKey(id string, pid int) string { return fmt.Sprint("release:", id, ":", pid) }

func (s *stage) release(c *child, id string) {
	s.Helper()
	if err := s.rdb.RPush(s.ctx, releaseKey(id, c.cmd.Process.Pid), "x").Err(); err != nil {
		s.Fatal(err)
	}
}

func (c *child) signal(s *stage, signal syscall.Signal) {
	s.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		s.Fatal(err)
	}
}
