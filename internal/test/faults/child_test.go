package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const leaseVariable = "CURFEW_FAULTS_LEASE"

// shortest is the shortest lease that is allowed.
const shortest = time.Second

// spawn starts a worker process on a queue.
func (s *stage) spawn(line string, lease time.Duration) *harness.Child {
	s.Helper()
	return s.Spawn(line, leaseVariable+"="+lease.String())
}

// play runs a worker on one queue, in a child process.
func play(line string, rdb *redis.Client, q *queue.Queue) {
	lease, _ := time.ParseDuration(os.Getenv(leaseVariable))
	config := worker.Config{Concurrency: 20, Lease: lease, Queues: map[string]int{line: 1}}
	if line != "crowd" {
		config.Concurrency = 1 // so that it cannot fetch its own task again
	}
	w := worker.New(q, config)
	w.HandleRaw("crowd", func(context.Context, []byte) ([]byte, error) {
		harness.Pass(time.Duration(rand.IntN(80)) * time.Millisecond) // sleeps: the work
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
	w.Run(context.Background())
}

// nothingYet are the counts of a child before its first outcome.
const nothingYet = "accepted 0, refused 0, stopped 0"

// tellCounts prints a worker's counts whenever they change.
func tellCounts(w *worker.Worker) {
	for last := nothingYet; ; harness.Pass(10 * time.Millisecond) { // sleeps: nothing notifies of a change
		c := w.Stats()
		if now := fmt.Sprintf("accepted %d, refused %d, stopped %d", c.Completed, c.Refused, c.Stopped); now != last {
			last = now
			fmt.Println(now)
		}
	}
}

// answered waits until a child's handler has returned and its outcome is known. It returns the
// child's counts.
func (s *stage) answered(c *harness.Child) (counts string) {
	s.Helper()
	for returned := false; !returned || counts == ""; {
		line := await.Receive(s, c.Lines, "the handler returns and its outcome is known")
		returned = returned || strings.HasPrefix(line, "returns ")
		if strings.HasPrefix(line, "accepted ") {
			counts = line
		}
	}
	return counts
}

// releaseKey returns the key of a list. A push to it lets the handler of a held task in that process
// return.
func releaseKey(id string, pid int) string { return fmt.Sprint("release:", id, ":", pid) }

func (s *stage) release(c *harness.Child, id string) {
	s.Helper()
	if err := s.Redis.RPush(s.Context(), releaseKey(id, c.Pid()), "x").Err(); err != nil {
		s.Fatal(err)
	}
}
