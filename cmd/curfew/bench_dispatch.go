package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const dispatchHelp = `Without --vs it measures Curfew alone: 500 tasks, each 2 ms after the one before it was
handled.

` + versusHelp + `

  dispatch_p50, dispatch_p99, dispatch_max
      from Enqueue of a lone task until its handler is called, in ms, on a worker of
      concurrency 10 that has nothing to do. Before each of 50 tasks the worker is left idle
      for a time drawn at random up to --pause: an idle asynq server looks for tasks every
      0.5 to 1.5 s (its TaskCheckInterval of 1 s), and tasks must not be in step with that.
      A worker of Curfew waits on a list in Redis. The bare script does that too. Of 100 tasks
      or fewer the p99 is the largest.

Three runs take about 6 minutes.`

// dispatchCommand measures lone tasks: `curfew bench dispatch`.
func dispatchCommand() *cli.Command {
	command := benchmark("dispatch", "how long a lone task takes from Enqueue to its handler; --vs asynq: beside another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 500, Usage: "how many tasks; with --vs 50 unless you say so"},
			durationFlag("pause", time.Second, "with --vs: the longest that the worker is left idle before a task"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Dispatch(ctx, rdb, c.Int("tasks"))
		})
	command.Description = dispatchHelp
	return compared(command, rivalry{
		only: []string{"pause"},
		trial: func(c *cli.Context, _ *bench.Place) (bench.Trial, error) {
			load := bench.DispatchLoad{Pause: max(durationOf(c, "pause"), 1)}
			if c.IsSet("tasks") {
				load.Tasks = c.Int("tasks")
			}
			return bench.DispatchTrial(load), nil
		},
	})
}
