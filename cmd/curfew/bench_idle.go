package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// idleCommand measures a fleet that has nothing to do: `curfew bench idle`.
func idleCommand() *cli.Command {
	return benchmark("idle", "what workers and reapers cost that have nothing to do", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "workers", Value: 1000, Usage: "how many workers, each with a reaper of its own"},
			&cli.IntFlag{Name: "reapers", Value: 0, Usage: "how many more reapers"},
			&cli.IntFlag{Name: "partitions", Value: 1, Usage: "how many partitions the namespace has"},
			&cli.BoolFlag{Name: "shared", Usage: "all use one client; otherwise each has its own, as in a process of its own"},
			durationFlag("for", 10*time.Second, "how long to measure"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Idle(ctx, rdb, bench.IdleConfig{Workers: c.Int("workers"), Reapers: c.Int("reapers"), Partitions: c.Int("partitions"),
				Shared: c.Bool("shared"), For: max(durationOf(c, "for"), time.Second)})
		})
}
