package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const throughputHelp = `Without --vs it measures Curfew alone: enqueue one by one from 16 goroutines, enqueue
in lists, drain by one worker of concurrency 50, and the time from Enqueue to the handler
of a lone task.

` + versusHelp + `

Each task has 100 random bytes and is made before the clock starts. Curfew has its events,
heartbeats, reaper and retention, and a deadline of an hour for each task; asynq its
heartbeats, forwarder, janitor and a timeout of 30 minutes for each task, and no retention.
There are 5 runs unless --runs says otherwise, after a short one that does not count.
Figures, in tasks a second:

  enqueue_16, enqueue_64  one call a task from 16 or 64 goroutines
  enqueue_lists           Curfew: one EnqueueAll. asynq has no call for lists and is
                          measured with one call a task from 64 goroutines
  drain                   from the start of a worker of concurrency 50 until the last
                          handler is called; handlers do nothing
  enqueue_and_drain       16 goroutines enqueue one by one; workers begin when a twentieth
                          of the tasks is in; until the last handler is called

The bare script stores payloads and moves ids, 50 tasks a call, and has no deadlines,
retries, leases or events.`

// throughputCommand is a benchmark of Curfew alone, or with --vs a comparison.
func throughputCommand() *cli.Command {
	command := benchmark("throughput", "enqueue one by one and in lists, drain at concurrency 50, idle dispatch; --vs asynq: beside another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 100000, Usage: "how many tasks; with --vs 20000 unless you say so"},
			&cli.IntFlag{Name: "partitions", Value: 1, Usage: "partitions of the namespace; not with --vs"},
			&cli.BoolFlag{Name: "full", Usage: "tasks of 400 bytes with retries, limits and headers of their own, and all events; not with --vs"},
			&cli.IntFlag{Name: "servers", Value: 1, Usage: "with --vs: workers, and asynq servers, that drain at once in this process"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Throughput(ctx, rdb, c.Int("tasks"), c.Int("partitions"), c.Bool("full"))
		})
	command.Description = throughputHelp
	return compared(command, rivalry{
		only: []string{"servers"},
		not: map[string]string{
			"partitions": "measures the default of 1",
			"full":       "measures what both libraries have by default",
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
