package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// measurement is one benchmark, run once.
type measurement func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error)

// measurements returns the commands that measure, also the hidden one.
func measurements() []*cli.Command {
	return []*cli.Command{
		throughputCommand(),
		dispatchCommand(),
		detectCommand(),
		memoryCommand(),
		countsCommand(),
		microCommand(),
		benchFunctionsCommand(),
		agentsCommand(),
		flowCommand(),
		failoverCommand(),
		recoveryCommand(),
		httpCommand(),
		holdCommand(),
	}
}

// invocations has flags for the invocations in the help of those commands that need some to be quick or to compare.
var invocations = map[string]string{
	"throughput": "\n    curfew-bench throughput --vs asynq --runs 3",
	"dispatch":   "\n    curfew-bench dispatch --vs asynq --runs 3",
	"detect":     "\n    curfew-bench detect --vs asynq --runs 3",
	"recovery":   "\n    curfew-bench recovery --vs asynq --kills 5",
	"memory":     " --tasks 100000",
	"counts":     " --gate",
	"agents":     " --only lag --only cost",
	"flow":       " --flows 50 --chain 100",
	"failover":   " --kills 3",
	"http":       " --tasks 5000",
}

// memoryCommand measures the memory of a task: `curfew-bench memory`.
func memoryCommand() *cli.Command {
	return benchmark("memory", "bytes of Redis memory a task takes while pending, running and completed, and bytes of append-only file", 1,
		[]cli.Flag{&cli.IntFlag{Name: "tasks", Value: 1000000, Usage: "how many tasks"}},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Memory(ctx, rdb, c.Int("tasks"))
		})
}

// benchmark returns a command that measures several times and prints the medians.
func benchmark(name, what string, runs int, flags []cli.Flag, measure measurement) *cli.Command {
	return &cli.Command{
		Name:  name,
		Usage: what,
		Flags: append(flags,
			&cli.IntFlag{Name: "runs", Value: runs, Usage: "how often to measure; prints the median"},
			outputFlag()),
		Action: func(c *cli.Context) error {
			if err := checkBench(c); err != nil {
				return err
			}
			runs, err := measureRuns(c, measure)
			if err != nil {
				return err
			}
			return print(c, runs...)
		},
	}
}

func outputFlag() cli.Flag {
	f := app.ChoiceFlag("output", "table", "table, json, or benchstat: each run as golang.org/x/perf/cmd/benchstat reads it", "table", "json", "benchstat")
	f.Aliases = []string{"o"}
	return f
}

func checkBench(c *cli.Context) error {
	if _, err := app.Arguments(c, app.Nothing); err != nil {
		return err
	}
	for _, name := range []string{"runs", "tasks", "waiting", "partitions", "servers", "kills", "agents", "fan", "concurrency", "wakes", "running", "flows", "alone", "chain"} {
		if n := c.Int(name); c.IsSet(name) && (n < 1 || n > 10_000_000) {
			return app.Usage("--%s %d must be from 1 to 10000000", name, n)
		}
	}
	for _, name := range []string{"others", "load"} {
		if n := c.Int(name); c.IsSet(name) && n < 0 {
			return app.Usage("--%s %d must not be negative", name, n)
		}
	}
	return nil
}

func measureRuns(c *cli.Context, measure measurement) ([]bench.Report, error) {
	rdb, stop, err := startRedis(c)
	if err != nil {
		return nil, err
	}
	defer stop()
	version, err := bench.RedisVersion(c.Context, rdb)
	if err != nil {
		return nil, err
	}
	var runs []bench.Report
	for range c.Int("runs") {
		report, err := measure(c.Context, rdb, c)
		if err != nil {
			return nil, err
		}
		report.Redis = version
		runs = append(runs, report)
	}
	return runs, nil
}

// print writes the medians of the runs, or each run for benchstat.
func print(c *cli.Context, runs ...bench.Report) error {
	out, medians := c.App.Writer, bench.Median(runs)
	switch c.String("output") {
	case "json":
		return printJSON(out, medians)
	case "benchstat":
		return bench.WriteBenchstat(out, runs...)
	}
	for _, f := range medians.Figures {
		fmt.Fprintf(out, "%-46s %12s %s\n", f.Name, bench.Digits(f.Value), f.Unit)
	}
	return nil
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// countsCommand measures costs that do not depend on the machine, and compares them with limits:
// `curfew-bench counts`.
func countsCommand() *cli.Command {
	command := benchmark("counts", "round trips, Redis commands and allocations a task", 1,
		[]cli.Flag{&cli.BoolFlag{Name: "gate", Usage: "exit with code 99 if a count exceeds its limit"}},
		nil)
	command.Description = "With --gate it exits with code 99 if a figure is above its limit in bench/counts.limits."
	command.Action = func(c *cli.Context) error {
		if err := checkBench(c); err != nil {
			return err
		}
		runs, err := measureRuns(c, counts)
		if err != nil {
			return err
		}
		if err := print(c, runs...); err != nil || !c.Bool("gate") {
			return err
		}
		return gate(c.App.Writer, bench.Median(runs))
	}
	return command
}

func counts(ctx context.Context, rdb redis.UniversalClient, _ *cli.Context) (bench.Report, error) {
	return bench.Counts(ctx, rdb)
}

func gate(out io.Writer, report bench.Report) error {
	broken := bench.Gate(report)
	for _, line := range broken {
		fmt.Fprintln(out, line)
	}
	if len(broken) > 0 {
		return cli.Exit("counts: a limit is exceeded", app.ExitThreshold)
	}
	fmt.Fprintln(out, "counts: within all limits")
	return nil
}

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
	command := benchmark("micro", "time of Redis that each call takes, in µs", 5,
		[]cli.Flag{&cli.IntFlag{Name: "tasks", Value: 5000, Usage: "tasks a round for each call, in at most 1000 calls"}},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Micro(ctx, rdb, c.Int("tasks"))
		})
	command.Description = microHelp
	return command
}

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

// agentsCommand measures agents: `curfew-bench agents`.
func agentsCommand() *cli.Command {
	return benchmark("agents", "how late agents wake, how many complete in a second, and what an agent costs and stores", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "agents", Value: 5000, Usage: "how many agents; for rate"},
			&cli.IntFlag{Name: "fan", Value: 10, Usage: "how many children each agent waits for"},
			&cli.IntFlag{Name: "concurrency", Value: 50, Usage: "concurrency of the worker; for rate"},
			&cli.IntFlag{Name: "wakes", Value: 1000, Usage: "how many wakes to measure, idle and under load; for lag"},
			&cli.IntFlag{Name: "load", Value: 5000, Usage: "tasks a second beside the wakes; for lag"},
			&cli.StringSliceFlag{Name: "only", Usage: "lag, rate, cost or memory; may be repeated (default: all)"},
		}, measureAgents)
}

func measureAgents(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
	fan, only := c.Int("fan"), c.StringSlice("only")
	for _, name := range only {
		if !slices.Contains([]string{"lag", "rate", "cost", "memory"}, name) {
			return bench.Report{}, app.Usage("--only %q must be lag, rate, cost or memory", name)
		}
	}
	report := bench.Report{Bench: "agents"}
	add := func(of string, measure func() (bench.Report, error)) error {
		if len(only) > 0 && !slices.Contains(only, of) {
			return nil
		}
		r, err := measure()
		report.Figures = append(report.Figures, r.Figures...)
		return err
	}
	for _, step := range []struct {
		of      string
		measure func() (bench.Report, error)
	}{
		{"lag", func() (bench.Report, error) { return bench.WakeLag(ctx, rdb, c.Int("wakes"), fan, 0) }},
		{"lag", func() (bench.Report, error) { return bench.WakeLag(ctx, rdb, c.Int("wakes"), fan, c.Int("load")) }},
		{"rate", func() (bench.Report, error) {
			return bench.AgentRate(ctx, rdb, c.Int("agents"), fan, c.Int("concurrency"))
		}},
		{"cost", func() (bench.Report, error) { return bench.AgentCost(ctx, rdb, 500, fan) }},
		{"cost", func() (bench.Report, error) { return bench.AgentCost(ctx, rdb, 100, 10*fan) }},
		{"memory", func() (bench.Report, error) { return bench.AgentMemory(ctx, rdb, 1000, fan) }},
	} {
		if err := add(step.of, step.measure); err != nil {
			return report, err
		}
	}
	return report, nil
}

// flowCommand measures runs of definitions: `curfew-bench flow`.
func flowCommand() *cli.Command {
	return benchmark("flow", "runs of definitions a second, the time between two nodes, and what a node costs, beside the same in Go", 3,
		[]cli.Flag{
			&cli.IntFlag{Name: "flows", Value: 200, Usage: "how many runs at once"},
			&cli.IntFlag{Name: "alone", Value: 100, Usage: "how many runs one after the other, for the time between two nodes"},
			&cli.IntFlag{Name: "chain", Value: 1000, Usage: "how many nodes the long chain has"},
			&cli.IntFlag{Name: "concurrency", Value: 50, Usage: "concurrency of the worker"},
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			return bench.Flows(ctx, rdb, bench.FlowsConfig{Runs: c.Int("flows"), Lags: c.Int("alone"), Chain: c.Int("chain"), Concurrency: c.Int("concurrency")})
		})
}

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
			return print(c, report)
		},
	}
}
