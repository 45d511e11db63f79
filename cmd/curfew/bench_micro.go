package main

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const microHelp = `Each call is made by one client, through the Go packages, on a redis-server without
persistence and with nothing else going on. Tasks have 100 random bytes and a deadline.

  CPU              CPU time of the main thread of Redis (INFO cpu), sockets included
  within scripts   the time of EVALSHA and FCALL (INFO commandstats), by the clock
  median call      of a whole call (INFO latencystats), by the clock
  : reference      CPU time, and the median call by the task, by those of one loop of a
                   script with fixed commands, which is measured before and after each
                   call. They move less with the machine than microseconds do. Look at CPU
                   for large calls, and at the median for small ones, where a third of the
                   CPU time is sockets and depends on how idle the machine is

The calls are enqueue, fetch and settle (in batches of 1, 8, 50 and 500, by the task),
sweep (of due tasks, 100 a look), fetch of nothing, sweep of nothing and heartbeat (by the
call), suspend (an agent makes 10 children and waits for them) and settle and wake (the 10
children end, and the agent is woken).`

// microCommand measures single calls: `curfew bench micro`.
func microCommand() *cli.Command {
	return &cli.Command{
		Name:        "micro",
		Usage:       "time of Redis that each call takes, in µs and beside a reference script",
		Description: microHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 5000, Usage: "tasks a round for each call; batches of 1 take 1000 at the most"},
			&cli.IntFlag{Name: "runs", Value: 5, Usage: "how many rounds; the median is told"},
			outputFlag(),
		},
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			rdb, stop, err := bench.StartRedis(c.Context)
			if err != nil {
				return cli.Exit(err, exitUnreachable)
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
