package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// flowCommand measures runs of definitions: `curfew-bench flow`.
func flowCommand() *cli.Command {
	return benchmark("flow", "runs of definitions a second, the time between two nodes, and what a node costs, beside the same in Go", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "flows", Value: 200, Usage: "how many runs at once"},
			&cli.IntFlag{Name: "alone", Value: 100, Usage: "how many runs one after the other, for the time between two nodes"},
			&cli.IntFlag{Name: "chain", Value: 1000, Usage: "how many nodes the long chain has"},
			&cli.IntFlag{Name: "concurrency", Value: 50, Usage: "concurrency of the worker"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Flows(ctx, rdb, bench.FlowsConfig{Runs: c.Int("flows"), Lags: c.Int("alone"), Chain: c.Int("chain"), Concurrency: c.Int("concurrency")})
		})
}
