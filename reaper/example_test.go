package reaper_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// This program is a reaper only. Workers run one too, unless Config.NoReaper is set. Any number of
// reapers can run.
func ExampleReaper_Run() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	r := reaper.New(q, reaper.Config{
		Fallback: 250 * time.Millisecond, // sweep this often even if alarms are lost
		Observe: func(partition int, swept reaper.Swept) {
			if swept.TimedOut > 0 {
				fmt.Printf("partition %d: %d tasks timed out\n", partition, swept.TimedOut)
			}
		},
	})
	if err := r.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
