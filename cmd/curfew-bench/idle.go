package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// idleCommand measures idle workers and reapers: `curfew-bench idle`.
func idleCommand() *cli.Command {
	return benchmark("idle", "what idle workers and reapers cost", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "workers", Value: 1000, Usage: "how many workers, each with its own reaper"},
			&cli.IntFlag{Name: "reapers", Value: 0, Usage: "how many more reapers"},
			&cli.IntFlag{Name: "partitions", Value: 1, Usage: "how many partitions the namespace has"},
			&cli.BoolFlag{Name: "shared", Usage: "all workers and reapers share one client; by default each has its own, as if it were a process"},
			app.DurationFlag("for", 10*time.Second, "how long to measure, at least 1s"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Idle(ctx, rdb, bench.IdleConfig{Workers: c.Int("workers"), Reapers: c.Int("reapers"), Partitions: c.Int("partitions"),
				Shared: c.Bool("shared"), For: max(app.DurationOf(c, "for"), time.Second)})
		})
}
