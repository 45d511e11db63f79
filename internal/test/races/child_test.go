package races

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// play runs a child process. role says what it does.
func play(role string, rdb *redis.Client, q *queue.Queue) {
	ctx := context.Background()
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
		w := worker.New(q, worker.Config{Concurrency: 20, Lease: 2 * time.Second})
		w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			fmt.Println("began", worker.Info(ctx).ID)
			select {} // the test kills the process
		})
		w.Run(ctx)
	case "mortal":
		w := worker.New(q, worker.Config{Concurrency: 10, Lease: 2 * time.Second})
		w.HandleRaw("good", func(ctx context.Context, _ []byte) ([]byte, error) {
			<-at(time.Now().Add(20 * time.Millisecond))
			return nil, nil
		})
		w.HandleRaw("killer", func(ctx context.Context, _ []byte) ([]byte, error) {
			return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		})
		w.Run(ctx)
	case "limited":
		w := worker.New(q, worker.Config{Lease: time.Second})
		agentwait.Handle(w, "limited", func(a *agentwait.Agent, _ string) (string, error) {
			_, err := agentwait.Await(a.With(agentwait.Wait{Limit: 1500 * time.Millisecond}), agentwait.Promise[string](a, "open", 0))
			return fmt.Sprint(err), nil
		})
		w.Run(ctx)
	default:
		playAgents(ctx, role, rdb, q)
	}
}
