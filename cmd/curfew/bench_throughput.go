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

With --vs asynq it puts the same loads on Curfew, on github.com/hibiken/asynq and on a bare
script, in turns at each load, on one redis-server without persistence. Each task has 100 random bytes.
Both libraries have their defaults: Curfew its events, heartbeats, reaper and retention, and
a deadline of an hour for each task; asynq its heartbeats, forwarder, janitor and a timeout
of 30 minutes for each task, and no retention. Tasks are made before the clock starts. There
are 5 runs unless --runs says otherwise, after a short one that does not count.

  enqueue_16, enqueue_64  one call a task from 16 or 64 goroutines
  enqueue_lists           Curfew: one EnqueueAll. asynq has no call for lists and is
                          measured with one call a task from 64 goroutines
  drain                   from the start of a worker of concurrency 50 until the last
                          handler is called; handlers do nothing
  enqueue_and_drain       16 goroutines enqueue one by one; workers begin when a twentieth
                          of the tasks is in; until the last handler is called

The bare script stores payloads and moves ids, 50 tasks a call, and has no deadlines,
retries, leases or events: what Redis can do at the most. It runs beside both. The ratio is
that of two turns side by side, and above 1 Curfew is faster.`

// throughputCommand is a benchmark of Curfew alone, or with --vs a comparison.
func throughputCommand() *cli.Command {
	command := benchmark("throughput", "enqueue one by one and in lists, drain at concurrency 50, idle dispatch; --vs asynq: beside another library", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 100000, Usage: "how many tasks; with --vs 20000 unless you say so"},
			&cli.IntFlag{Name: "partitions", Value: 1, Usage: "partitions of the namespace; not with --vs"},
			&cli.BoolFlag{Name: "full", Usage: "tasks of 400 bytes with retries, limits and headers of their own, and all events; not with --vs"},
			&cli.StringFlag{Name: "vs", Usage: "what to compare with: asynq"},
			&cli.IntFlag{Name: "servers", Value: 1, Usage: "with --vs: workers, and asynq servers, that drain at once in this process"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Throughput(ctx, rdb, c.Int("tasks"), c.Int("partitions"), c.Bool("full"))
		})
	command.Description = throughputHelp
	alone := command.Action
	command.Action = func(c *cli.Context) error {
		if err := checkVersus(c); err != nil {
			return err
		}
		if c.IsSet("vs") {
			return versus(c)
		}
		return alone(c)
	}
	return command
}

func checkVersus(c *cli.Context) error {
	switch vs := c.String("vs"); {
	case c.IsSet("vs") && vs != "asynq":
		return usage("--vs %q must be asynq, the only library to compare with", vs)
	case c.IsSet("vs") && c.IsSet("partitions"):
		return usage("--partitions cannot be combined with --vs, which measures the default of 1: leave one of them out")
	case c.IsSet("vs") && c.Bool("full"):
		return usage("--full cannot be combined with --vs, which measures what both libraries have by default: leave one of them out")
	case !c.IsSet("vs") && c.IsSet("servers"):
		return usage("--servers is for a comparison: add --vs asynq, or leave it out")
	}
	return checkBench(c)
}

// versus compares: `curfew bench throughput --vs asynq`.
func versus(c *cli.Context) error {
	rdb, stop, err := bench.StartRedis(c.Context)
	if err != nil {
		return cli.Exit(err, exitUnreachable)
	}
	defer stop()
	config := bench.VersusConfig{Servers: c.Int("servers")}
	if c.IsSet("tasks") {
		config.Tasks = c.Int("tasks")
	}
	if c.IsSet("runs") {
		config.Runs = c.Int("runs")
	}
	comparison, err := bench.Versus(c.Context, rdb.Options().Addr, config)
	if err != nil {
		return err
	}
	if c.String("output") == "json" {
		return printJSON(c.App.Writer, comparison)
	}
	return comparison.WriteTable(c.App.Writer)
}
