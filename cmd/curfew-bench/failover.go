package main

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// failoverCommand measures failovers: `curfew-bench failover`. It starts a cluster. It has no
// --runs, because every kill is a run.
func failoverCommand() *cli.Command {
	return &cli.Command{
		Name:  "failover",
		Usage: "how long a shard of a cluster is without service when its master dies, and the longest gap of other shards",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 10, Usage: "how many masters to kill, one after the other"},
			&cli.IntFlag{Name: "partitions", Value: 8, Usage: "partitions of the namespace"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			report, err := bench.Failover(c.Context, c.Int("kills"), c.Int("partitions"))
			if err != nil {
				return err
			}
			return print(c.App.Writer, c.String("output"), report)
		},
	}
}
