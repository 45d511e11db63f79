package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

const dispatchHelp = `Without --vs it measures Curfew alone: 500 tasks unless --tasks says otherwise, each
enqueued 2 ms after the handler of the previous one was called.

` + versusHelp + `

  dispatch_p50, dispatch_p99, dispatch_max
      from Enqueue of a lone task until its handler is called, in ms, on an idle worker of
      concurrency 10. Before each of 50 tasks the worker is idle for a random time up to
      --pause: an idle asynq server polls every 0.5 to 1.5 s (its TaskCheckInterval is 1 s),
      and tasks must not be in step with that. A worker of Curfew waits on a list in Redis,
      and so does the bare script. With 100 tasks or fewer the p99 is the largest value.

Three runs take about 6 minutes.`

// dispatchCommand measures lone tasks: `curfew-bench dispatch`.
func dispatchCommand() *cli.Command {
	command := benchmark("dispatch", "how long a lone task takes from Enqueue to its handler; --vs asynq compares with another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 500, Usage: "how many tasks; the default with --vs is 50"},
			app.DurationFlag("pause", time.Second, "with --vs: the longest time that the worker is idle before a task"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Dispatch(ctx, rdb, c.Int("tasks"))
		})
	command.Description = dispatchHelp
	return compared(command, rivalry{
		only: []string{"pause"},
		trial: func(c *cli.Context, _ *bench.Place) (bench.Trial, error) {
			load := bench.DispatchLoad{Pause: max(app.DurationOf(c, "pause"), 1)}
			if c.IsSet("tasks") {
				load.Tasks = c.Int("tasks")
			}
			return bench.DispatchTrial(load), nil
		},
	})
}
