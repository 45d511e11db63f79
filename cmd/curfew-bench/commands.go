package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

// commandsCommand measures the program curfew: `curfew-bench commands`.
func commandsCommand() *cli.Command {
	command := benchmark("commands", "how long curfew get, ls and rm take from the start of the process to its end, among many tasks", 1,
		[]cli.Flag{
			&cli.IntFlag{Name: "tasks", Value: 1000000, Usage: "how many tasks are pending"},
			&cli.IntFlag{Name: "ended", Value: 100000, Usage: "how many tasks have ended; rm removes them"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Commands(ctx, rdb, bench.CommandsConfig{Program: c.String("curfew"), Redis: "redis://" + rdb.(*redis.Client).Options().Addr,
				Tasks: c.Int("tasks"), Ended: c.Int("ended")})
		})
	command.Description = `ls looks for 100 tasks, which are the oldest of all, with each of its filters. It begins with the newest, so this is its
longest way.

    curfew-bench commands --runs 3`
	return ofCurfew(command)
}
