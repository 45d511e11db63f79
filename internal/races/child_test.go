package races

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// play is the life of a child.
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
