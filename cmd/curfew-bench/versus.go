package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/refusal"
)

// versusHelp is the part of the help that all comparisons share.
const versusHelp = `With --vs asynq the same load is put on Curfew, on github.com/hibiken/asynq and on a bare
script, in turns on one redis-server in one run. Both libraries have their default settings
and quiet logs. The table shows the median of the runs, with the least and the most. The bare
script does only what the load needs: it shows the most that Redis can do. A ratio compares
two turns of the same run, and says how many times better Curfew is: above 1 Curfew is
faster. "never" means that a library does not do this. -o json uses the names below, and
null for never. -o benchstat writes each run, and nothing for never: benchstat -col /system
says by how much the systems differ, and whether by chance.

--aof gives the redis-server an append-only file that is synced once a second, for all of
them. --redis measures on your server with its settings. Keys that begin with NAMESPACE:{,
NAMESPACE-floor: or asynq: must not exist before; they are removed afterwards. No other key
is touched. Curfew's library of functions stays on the server.

--threshold compares a figure of Curfew with a limit, or with x a ratio. If one is missed,
the exit code after the table is 99.`

// rivalry describes a benchmark that compares Curfew with other queues.
type rivalry struct {
	// trial returns the measurement. at is filled in when the trial runs, not before.
	trial func(c *cli.Context, at *bench.Place) (bench.Trial, error)
	only  []string          // flags that need --vs
	not   map[string]string // flags that cannot be combined with --vs, and why
}

// compared adds --vs to a benchmark.
func compared(command *cli.Command, r rivalry) *cli.Command {
	command.Flags = append(command.Flags,
		&cli.StringFlag{Name: "vs", Usage: "the library to compare with: asynq"},
		&cli.StringFlag{Name: "redis", Usage: "with --vs: use your server, redis://host:6379/0, instead of starting one"},
		&cli.StringFlag{Name: "namespace", Value: "bench", Usage: "with --redis: the prefix of the keys"},
		&cli.BoolFlag{Name: "aof", Usage: "start the redis-server with an append-only file, synced once a second"},
		&cli.StringSliceFlag{Name: "threshold", Usage: "with --vs: a limit such as '" + exampleOf[command.Name] + "'; may be repeated"})
	r.only = append(r.only, "redis", "namespace", "threshold")
	action := command.Action
	command.Action = func(c *cli.Context) error {
		if err := r.check(c); err != nil {
			return err
		}
		if c.IsSet("vs") {
			return r.run(c)
		}
		return action(c)
	}
	return command
}

// exampleOf has the example of --threshold in the help of each command.
var exampleOf = map[string]string{
	"throughput": "enqueue_16>=1.2x", "dispatch": "dispatch_p99<=10ms", "detect": "detect_pending_p99<=10ms", "recovery": "recovery_max<=20s",
}

func (r rivalry) check(c *cli.Context) error {
	if vs := c.String("vs"); c.IsSet("vs") && vs != "asynq" {
		return app.Usage("--vs %q must be asynq, the only library to compare with", vs)
	}
	for _, name := range r.only {
		if c.IsSet(name) && !c.IsSet("vs") {
			return app.Usage("--%s is for a comparison: add --vs asynq, or leave it out", name)
		}
	}
	for name, reason := range r.not {
		if c.IsSet(name) && c.IsSet("vs") {
			return app.Usage("--%s cannot be combined with --vs, which %s: leave one of them out", name, reason)
		}
	}
	switch {
	case c.Bool("aof") && c.IsSet("redis"):
		return app.Usage("--aof is for a server that this command starts, and --redis names a running one: leave one of them out")
	case c.IsSet("namespace") && !c.IsSet("redis"):
		return app.Usage("--namespace is for your own server: add --redis, or leave it out")
	case c.String("namespace") == "":
		return app.Usage("--namespace must not be empty")
	}
	return checkBench(c)
}

// run compares: `curfew-bench throughput --vs asynq`.
func (r rivalry) run(c *cli.Context) error {
	systems := systems(0)
	config := bench.CompareConfig{Given: c.IsSet("redis"), Place: bench.Place{URL: c.String("redis"), Namespace: c.String("namespace")}}
	if c.IsSet("runs") {
		config.Runs = c.Int("runs")
	}
	trial, err := r.trial(c, &config.Place)
	if err != nil {
		return err
	}
	limits, err := thresholds(c, trial, systems)
	if err != nil {
		return err
	}
	if !config.Given {
		rdb, stop, err := startRedis(c)
		if err != nil {
			return err
		}
		defer stop()
		config.Place.URL = "redis://" + rdb.Options().Addr
	}
	comparison, err := bench.Compare(c.Context, trial, config, systems...)
	if err != nil {
		return err
	}
	if err := printComparison(c, comparison); err != nil {
		return err
	}
	return missed(c, comparison.Missed(limits))
}

// thresholds reads all limits before anything starts.
func thresholds(c *cli.Context, trial bench.Trial, systems []bench.System) ([]bench.Threshold, error) {
	var list []bench.Threshold
	for _, text := range c.StringSlice("threshold") {
		limit, err := bench.ParseThreshold(text, trial, systems...)
		if err != nil {
			return nil, app.Usage("--threshold: %v", err)
		}
		list = append(list, limit)
	}
	return list, nil
}

// missed writes a line for each missed threshold, to stderr if a program reads the output, and returns the
// exit code.
func missed(c *cli.Context, lines []string) error {
	out := c.App.Writer
	if c.String("output") != "table" {
		out = c.App.ErrWriter
	}
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	if len(lines) > 0 {
		return cli.Exit(fmt.Sprintf("%s: %d thresholds are missed", c.Command.Name, len(lines)), app.ExitThreshold)
	}
	return nil
}

func printComparison(c *cli.Context, comparison bench.Comparison) error {
	switch c.String("output") {
	case "json":
		return printJSON(c.App.Writer, comparison)
	case "benchstat":
		return comparison.WriteBenchstat(c.App.Writer)
	}
	return comparison.WriteTable(c.App.Writer)
}

// startRedis starts a server for the benchmark.
func startRedis(c *cli.Context) (rdb *redis.Client, stop func(), err error) {
	var settings []string
	if c.Bool("aof") {
		settings = bench.AOF
	}
	rdb, stop, err = bench.StartRedis(c.Context, settings...)
	if err != nil {
		return nil, nil, cli.Exit(err, app.ExitUnreachable)
	}
	return rdb, stop, nil
}

// benchError adds advice to the error of a benchmark.
func benchError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return app.Interrupted("a measurement that is not complete has no figures")
	case errors.Is(err, bench.ErrUnreachable):
		return cli.Exit(fmt.Sprintf("%v: start it, or give its address with --redis", err), app.ExitUnreachable)
	case errors.Is(err, bench.ErrOccupied):
		return app.Usage("%v: choose another name with --namespace, or another database or server with --redis redis://host:port/1", err)
	case errors.Is(err, refusal.ErrInvalid):
		return app.Usage("%v", err)
	}
	return err
}

// systems returns the systems that a comparison measures: Curfew, the other libraries, and the floor.
func systems(lease time.Duration) []bench.System {
	return []bench.System{bench.Curfew(lease), bench.Asynq(), bench.Floor()}
}

// systemNamed returns the system of a name. Worker processes get the name on their command line.
func systemNamed(name string, lease time.Duration) (bench.System, error) {
	list := systems(lease)
	i := slices.IndexFunc(list, func(s bench.System) bool { return s.Name() == name })
	if i < 0 {
		return nil, app.Usage("there is no system %q", name)
	}
	return list[i], nil
}
