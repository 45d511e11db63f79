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

// countsCommand measures costs that do not depend on the machine, and compares them with limits:
// `curfew-bench counts`.
func countsCommand() *cli.Command {
	command := benchmark("counts", "round trips, Redis commands and allocations a task", 1,
		[]cli.Flag{&cli.BoolFlag{Name: "gate", Usage: "exit with code 99 if a count exceeds its limit"}},
		nil)
	command.Description = "With --gate it exits with code 99 if a figure is above its limit in bench/counts.limits."
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

func counts(ctx context.Context, rdb redis.UniversalClient, _ *cli.Context) (bench.Report, error) {
	return bench.Counts(ctx, rdb)
}

func gate(out io.Writer, report bench.Report) error {
	broken := bench.Gate(report)
	for _, line := range broken {
		fmt.Fprintln(out, line)
	}
	if len(broken) > 0 {
		return cli.Exit("counts: a limit is exceeded", app.ExitThreshold)
	}
	fmt.Fprintln(out, "counts: within all limits")
	return nil
}
