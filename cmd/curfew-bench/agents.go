package main

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// agentsCommand measures agents: `curfew-bench agents`.
func agentsCommand() *cli.Command {
	return benchmark("agents", "how late agents wake, how many complete in a second, and what an agent costs and stores", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "agents", Value: 5000, Usage: "how many agents; for rate"},
			&cli.IntFlag{Name: "fan", Value: 10, Usage: "how many children each agent waits for"},
			&cli.IntFlag{Name: "concurrency", Value: 50, Usage: "concurrency of the worker; for rate"},
			&cli.IntFlag{Name: "wakes", Value: 1000, Usage: "how many wakes to measure, idle and under load; for lag"},
			&cli.IntFlag{Name: "load", Value: 5000, Usage: "tasks a second beside the wakes; for lag"},
			&cli.StringSliceFlag{Name: "only", Usage: "lag, rate, cost or memory; may be repeated (default: all)"},
		}, measureAgents)
}

func measureAgents(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
	fan, only := c.Int("fan"), c.StringSlice("only")
	for _, name := range only {
		if !slices.Contains([]string{"lag", "rate", "cost", "memory"}, name) {
			return bench.Report{}, app.Usage("--only %q must be lag, rate, cost or memory", name)
		}
	}
	all := bench.Report{Bench: "agents"}
	add := func(of string, measure func() (bench.Report, error)) error {
		if len(only) > 0 && !slices.Contains(only, of) {
			return nil
		}
		r, err := measure()
		all.Figures = append(all.Figures, r.Figures...)
		return err
	}
	for _, part := range []struct {
		of      string
		measure func() (bench.Report, error)
	}{
		{"lag", func() (bench.Report, error) { return bench.WakeLag(ctx, rdb, c.Int("wakes"), fan, 0) }},
		{"lag", func() (bench.Report, error) { return bench.WakeLag(ctx, rdb, c.Int("wakes"), fan, c.Int("load")) }},
		{"rate", func() (bench.Report, error) {
			return bench.AgentRate(ctx, rdb, c.Int("agents"), fan, c.Int("concurrency"))
		}},
		{"cost", func() (bench.Report, error) { return bench.AgentCost(ctx, rdb, 500, fan) }},
		{"cost", func() (bench.Report, error) { return bench.AgentCost(ctx, rdb, 100, 10*fan) }},
		{"memory", func() (bench.Report, error) { return bench.AgentMemory(ctx, rdb, 1000, fan) }},
	} {
		if err := add(part.of, part.measure); err != nil {
			return all, err
		}
	}
	return all, nil
}
