package main

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// failoverCommand is a benchmark that starts a cluster, and needs no runs: every kill
// is one.
func failoverCommand() *cli.Command {
	return &cli.Command{
		Name:  "failover",
		Usage: "how long a shard of a cluster is without service when its master dies, and the others meanwhile",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 10, Usage: "how many masters are killed, one after the other"},
			&cli.IntFlag{Name: "partitions", Value: 8, Usage: "partitions of the namespace"},
			outputFlag(),
		},
		OnUsageError: usageError,
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
