package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

const throughputHelp = `Without --vs it measures Curfew alone: enqueuing one by one from 16 goroutines, enqueuing
in lists, draining by one worker of concurrency 50, and the time from Enqueue to the handler
of a lone task.

` + versusHelp + `

Each task has 100 random bytes and is made before the clock starts. Curfew has its events,
heartbeats, reaper and retention, and a deadline of an hour for each task. asynq has its
heartbeats, forwarder and janitor, a timeout of 30 minutes for each task, and no retention.
With --vs the default is 5 runs. A short run that does not count comes first.
Figures, in tasks a second:

  enqueue_16, enqueue_64  one call a task from 16 or 64 goroutines
  enqueue_lists           Curfew: one EnqueueAll. asynq has no call for lists and is
                          measured with one call a task from 64 goroutines
  drain                   from the start of a worker of concurrency 50 until the last
                          handler is called; handlers do nothing
  enqueue_and_drain       16 goroutines enqueue one by one, and workers start when a
                          twentieth of the tasks is enqueued; until the last handler is
                          called

The bare script stores payloads and moves ids, 50 tasks a call, and has no deadlines,
retries, leases or events.`

// throughputCommand measures tasks a second: `curfew-bench throughput`. With --vs it compares
// Curfew with others.
func throughputCommand() *cli.Command {
	command := benchmark("throughput", "tasks a second: enqueue one by one and in lists, drain; idle dispatch; --vs asynq compares with another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 100000, Usage: "how many tasks; the default with --vs is 20000"},
			&cli.IntFlag{Name: "partitions", Value: 1, Usage: "partitions of the namespace; not with --vs"},
			&cli.BoolFlag{Name: "full", Usage: "tasks have 400 bytes, retries, limits and headers, and the namespace records all events; not with --vs"},
			&cli.IntFlag{Name: "servers", Value: 1, Usage: "with --vs: how many workers, and asynq servers, drain at the same time in this process"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Throughput(ctx, rdb, c.Int("tasks"), c.Int("partitions"), c.Bool("full"))
		})
	command.Description = throughputHelp
	return compared(command, rivalry{
		only: []string{"servers"},
		not: map[string]string{
			"partitions": "measures one partition",
			"full":       "measures the defaults of both libraries",
		},
		trial: func(c *cli.Context, _ *bench.Place) (bench.Trial, error) {
			load := bench.ThroughputLoad{Servers: c.Int("servers")}
			if c.IsSet("tasks") {
				load.Tasks = c.Int("tasks")
			}
			return bench.ThroughputTrial(load), nil
		},
	})
}

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
