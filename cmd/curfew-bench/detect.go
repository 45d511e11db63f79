package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

const detectHelp = `Without --vs it measures Curfew alone: pending tasks whose deadlines are spread over a
span, one reaper, and an observer that reads the event stream.

` + versusHelp + `

  detect_pending_p50, _p99, _max
      a task that no worker has: from its deadline until an observer sees that it ended, in
      ms. asynq never does this: it checks a task's deadline when a server takes the task.
      A task that no server takes stays pending without limit.
  detect_running_p50, _p99, _max
      a task whose handler runs: from its deadline until an observer sees that it ended, in
      ms. Its timeout is 1 s, because asynq's timeouts are whole seconds. asynq has no
      events, so its observer polls an Inspector for archived tasks, every 0.5 ms.
  detect_handler_p50, _p99, _max
      the same tasks: how late the context of the handler ended, in ms, seen in the handler.

Curfew's deadlines are in ms, and a task is late one ms after its deadline. So 1 ms is the
least possible lag. The bare script polls once a ms. Three runs take about 3 minutes.`

// detectCommand measures how late timeouts are noticed: `curfew-bench detect`.
func detectCommand() *cli.Command {
	command := benchmark("detect", "how late timeouts are noticed, seen by an observer of the events; --vs asynq compares with another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 10000, Usage: "how many pending tasks"},
			&cli.IntFlag{Name: "running", Value: 100, Usage: "with --vs: how many running tasks"},
			&cli.IntFlag{Name: "others", Value: 100000, Usage: "how many other tasks with a far deadline; without --vs, --over 0s uses none"},
			app.DurationFlag("over", 10*time.Second, "the span of time that the deadlines are spread over; 0s: all in one ms"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			if app.DurationOf(c, "over") == 0 {
				return bench.SameMillisecond(ctx, rdb, c.Int("tasks"))
			}
			return bench.Detect(ctx, rdb, c.Int("tasks"), c.Int("others"), app.DurationOf(c, "over"))
		})
	command.Description = detectHelp
	return compared(command, rivalry{
		only: []string{"running"},
		trial: func(c *cli.Context, _ *bench.Place) (bench.Trial, error) {
			if n := c.Int("running"); n > 1000 {
				return bench.Trial{}, app.Usage("--running %d must be from 1 to 1000: each is a handler that runs", n)
			}
			return bench.DetectTrial(bench.DeadlineLoad{
				Pending: c.Int("tasks"), Running: c.Int("running"), Others: c.Int("others"), Over: app.DurationOf(c, "over")}), nil
		},
	})
}
