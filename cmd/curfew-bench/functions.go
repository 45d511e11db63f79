package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
)

const benchFunctionsHelp = `The client is go-redis, with 1 connection and with 16. Each sends its next call when the last
one has returned. HSET and ZADD is a script that writes a hash and an entry of a sorted set,
which is the least that a queue with deadlines could do.

The client needs more of the machine than Redis does. redis-benchmark needs less:

    curfew functions load
    redis-cli FCALL curfew_open 1 'curfew:{0}'
    redis-benchmark -n 100000 -c 16 FCALL curfew_enqueue 1 'curfew:{0}' render payload '{"page":"index"}' timeout 30s

curfew-bench micro measures the time of Redis that a call takes. bench/node/run compares with BullMQ.`

// benchFunctionsCommand measures the functions for programs in other languages: `curfew-bench functions`.
func benchFunctionsCommand() *cli.Command {
	command := benchmark("functions", "tasks a second through the functions for other languages, and what loading them costs", 5,
		[]cli.Flag{&cli.IntFlag{Name: "tasks", Value: 20000, Usage: "how many tasks each call handles in a run"}},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Functions(ctx, rdb.(*redis.Client), c.Int("tasks"))
		})
	command.Description = benchFunctionsHelp
	return command
}
