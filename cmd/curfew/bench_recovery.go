package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/queue"
)

// defaultLease is that of worker.Config.
const defaultLease = 15 * time.Second

// recoveryCommand is a benchmark whose workers are processes of this program.
func recoveryCommand() *cli.Command {
	return benchmark("recovery", "how long a task stands still when the process that runs it is killed: at the default lease, and at a shorter one", 1,
		[]cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 10, Usage: "how many worker processes are killed"},
			durationFlag("lease", 2*time.Second, "the other lease; 0s: only the default one of 15s"),
		},
		func(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
			kills, short := c.Int("kills"), durationOf(c, "lease")
			if kills < 1 || kills > 100 {
				return bench.Report{}, usage("--kills %d must be from 1 to 100: each is a process", kills)
			}
			if short != 0 && short < time.Second {
				return bench.Report{}, usage("--lease %v must be at least 1s, or 0s for the default one only", short)
			}
			program, err := os.Executable()
			if err != nil {
				return bench.Report{}, err
			}
			address := "redis://" + rdb.(*redis.Client).Options().Addr
			holder := func(namespace, line string, lease time.Duration) *exec.Cmd {
				return exec.Command(program, "bench", "hold", address, namespace, line, lease.String())
			}
			report, err := bench.Recovery(ctx, rdb, kills, defaultLease, holder)
			if err != nil || short == 0 {
				return report, err
			}
			beside, err := bench.Recovery(ctx, rdb, kills, short, holder)
			report.Figures = append(report.Figures, beside.Figures...)
			return report, err
		})
}

// holdCommand is what recovery kills: a worker that takes a task and keeps it.
func holdCommand() *cli.Command {
	return &cli.Command{
		Name:   "hold",
		Hidden: true,
		Action: func(c *cli.Context) error {
			if c.NArg() != 4 {
				return usage("bench hold is for bench recovery: it takes an address, a namespace, a queue and a lease")
			}
			rdb, err := queue.Connect(c.Args().Get(0))
			if err != nil {
				return err
			}
			defer rdb.Close()
			lease, err := time.ParseDuration(c.Args().Get(3))
			if err != nil {
				return usage("%v", err)
			}
			go func() { // it ends with the program that started it
				io.Copy(io.Discard, os.Stdin)
				os.Exit(exitFailed)
			}()
			return bench.Hold(c.Context, rdb, c.App.Writer, c.Args().Get(1), c.Args().Get(2), lease)
		},
	}
}
