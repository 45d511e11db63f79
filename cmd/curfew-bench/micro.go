package main

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const microHelp = `One client makes each call, through the Go packages, on a redis-server without persistence
that does nothing else. Tasks have 100 random bytes and a deadline.

  CPU              CPU time of the main thread of Redis (INFO cpu), sockets included
  within scripts   elapsed time of EVALSHA and FCALL (INFO commandstats)
  median call      median elapsed time of a whole call (INFO latencystats)

Measure two versions in turns on one machine. Compare the CPU time of large calls, because other
programs interrupt them, and the median of small calls: a third of their CPU time is sockets, and
depends on how idle the machine is.

Figures of enqueue, fetch and settle are for one task, in batches of 1, 8, 50 and 500.
Those of sweep are for one due task, 100 a call. Those of curfew_enqueue, fetch of nothing,
sweep of nothing and heartbeat are for one call. Those of suspend (an agent creates 10 children and waits for
them) and of settle and wake (the 10 children end, and the agent is woken) are for one agent.`

// microCommand measures single calls: `curfew-bench micro`.
func microCommand() *cli.Command {
	return &cli.Command{
		Name:        "micro",
		Usage:       "time of Redis that each call takes, in µs",
		Description: microHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 5000, Usage: "tasks a round for each call, in at most 1000 calls"},
			&cli.IntFlag{Name: "runs", Value: 5, Usage: "how many rounds to measure; prints the median"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			rdb, stop, err := startRedis(c)
			if err != nil {
				return err
			}
			defer stop()
			report, err := bench.Micro(c.Context, rdb, bench.MicroConfig{Rounds: c.Int("runs"), Tasks: c.Int("tasks")})
			if err != nil {
				return err
			}
			if c.String("output") == "json" {
				return printJSON(c.App.Writer, report)
			}
			return report.WriteTable(c.App.Writer)
		},
	}
}
