package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// measurement is one benchmark, run once.
type measurement func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error)

// measurements returns the commands that measure, also the hidden one.
func measurements() []*cli.Command {
	return []*cli.Command{
		throughputCommand(),
		dispatchCommand(),
		detectCommand(),
		memoryCommand(),
		countsCommand(),
		microCommand(),
		benchFunctionsCommand(),
		agentsCommand(),
		flowCommand(),
		failoverCommand(),
		recoveryCommand(),
		httpCommand(),
		holdCommand(),
	}
}

// invocations has flags for the invocations in the help of those commands that need some to be quick or to compare.
var invocations = map[string]string{
	"throughput": "\n    curfew-bench throughput --vs asynq --runs 3",
	"dispatch":   "\n    curfew-bench dispatch --vs asynq --runs 3",
	"detect":     "\n    curfew-bench detect --vs asynq --runs 3",
	"recovery":   "\n    curfew-bench recovery --vs asynq --kills 5",
	"memory":     " --tasks 100000",
	"counts":     " --gate",
	"agents":     " --only lag --only cost",
	"flow":       " --flows 50 --chain 100",
	"failover":   " --kills 3",
	"http":       " --tasks 5000",
}

// memoryCommand measures what tasks take: `curfew-bench memory`.
func memoryCommand() *cli.Command {
	return benchmark("memory", "bytes of Redis memory a task takes while pending, running and completed, and bytes of append-only file", 1,
		[]cli.Flag{&cli.IntFlag{Name: "tasks", Value: 1000000, Usage: "how many tasks"}},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Memory(ctx, rdb, c.Int("tasks"))
		})
}

// benchmark returns a command that measures several times and prints the medians.
func benchmark(name, what string, runs int, flags []cli.Flag, measure measurement) *cli.Command {
	return &cli.Command{
		Name:  name,
		Usage: what,
		Flags: append(flags,
			&cli.IntFlag{Name: "runs", Value: runs, Usage: "how often to measure; prints the median"},
			outputFlag()),
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			report, err := measureRuns(c, measure)
			if err != nil {
				return err
			}
			return print(c.App.Writer, c.String("output"), report)
		},
	}
}

func outputFlag() cli.Flag {
	f := app.ChoiceFlag("output", "table", "table or json", "table", "json")
	f.Aliases = []string{"o"}
	return f
}

func checkBench(c *cli.Context) error {
	if _, err := app.Arguments(c, app.Nothing); err != nil {
		return err
	}
	for _, name := range []string{"runs", "tasks", "waiting", "partitions", "servers", "kills", "agents", "fan", "concurrency", "wakes", "running", "flows", "alone", "chain"} {
		if n := c.Int(name); c.IsSet(name) && (n < 1 || n > 10_000_000) {
			return app.Usage("--%s %d must be from 1 to 10000000", name, n)
		}
	}
	for _, name := range []string{"others", "load"} {
		if n := c.Int(name); c.IsSet(name) && n < 0 {
			return app.Usage("--%s %d must not be negative", name, n)
		}
	}
	return nil
}

func measureRuns(c *cli.Context, measure measurement) (bench.Report, error) {
	rdb, stop, err := startRedis(c)
	if err != nil {
		return bench.Report{}, err
	}
	defer stop()
	var reports []bench.Report
	for range c.Int("runs") {
		report, err := measure(c.Context, rdb, c)
		if err != nil {
			return bench.Report{}, err
		}
		reports = append(reports, report)
	}
	return bench.Median(reports), nil
}

func print(out io.Writer, format string, report bench.Report) error {
	if format == "json" {
		return printJSON(out, report)
	}
	for _, f := range report.Figures {
		fmt.Fprintf(out, "%-46s %12s %s\n", f.Name, bench.Digits(f.Value), f.Unit)
	}
	return nil
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
