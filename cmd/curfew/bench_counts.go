package main

import (
	"context"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const countsHelp = `With --gate the time of Redis is measured too, as bench micro does, and the exit code is
99 if anything is above its limit. Limits are in bench/counts.limits and bench/micro.limits.
Times are told in loops of a reference script that runs beside them, have a tolerance of
30 %, and are measured up to three times before the gate fails.`

// countsCommand counts what does not depend on the machine, and holds it to limits.
func countsCommand() *cli.Command {
	command := benchmark("counts", "round trips, Redis commands and allocations a task", 1,
		[]cli.Flag{&cli.BoolFlag{Name: "gate", Usage: "fail with exit code 99 if a limit is exceeded, of counts or of Redis's time"}},
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
		return cli.Exit("counts: a task costs more than it may", exitThreshold)
	}
	fmt.Fprintln(out, "counts: within all limits")
	return nil
}
