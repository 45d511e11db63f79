package main

import (
	"context"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

const countsHelp = `With --gate it also measures the time of Redis, as curfew-bench micro does, and exits with code 99
if a figure is above its limit. Limits are in bench/counts.limits and bench/micro.limits.
The unit of times is one loop of a reference script, measured beside them. A time may be 30 %
above its limit. It is measured up to three times, and the least counts.`

// countsCommand measures costs that do not depend on the machine, and compares them with limits:
// `curfew-bench counts`.
func countsCommand() *cli.Command {
	command := benchmark("counts", "round trips, Redis commands and allocations a task", 1,
		[]cli.Flag{&cli.BoolFlag{Name: "gate", Usage: "also measure the time of Redis, and exit with code 99 if a count or a time exceeds its limit"}},
		nil)
	command.Description = countsHelp
	command.Action = func(c *cli.Context) error {
		if err := checkBench(c); err != nil {
			return err
		}
		report, err := measureRuns(c, counts)
		if err != nil {
			return err
		}
		if err := print(c.App.Writer, c.String("output"), report); err != nil || !c.Bool("gate") {
			return err
		}
		return gate(c.App.Writer, report)
	}
	return command
}

func counts(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
	report, err := bench.Counts(ctx, rdb)
	if err != nil || !c.Bool("gate") {
		return report, err
	}
	times, err := bench.Times(ctx, rdb)
	report.Figures = append(report.Figures, times.Figures...)
	return report, err
}

func gate(out io.Writer, report bench.Report) error {
	broken := append(bench.Gate(report), bench.GateTimes(report)...)
	for _, line := range broken {
		fmt.Fprintln(out, line)
	}
	if len(broken) > 0 {
		return cli.Exit("counts: a limit is exceeded", app.ExitThreshold)
	}
	fmt.Fprintln(out, "counts: within all limits")
	return nil
}
