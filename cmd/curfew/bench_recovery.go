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
)

// defaultLease is that of worker.Config.
const defaultLease = 15 * time.Second

const recoveryHelp = `Worker processes with a task each are killed (SIGKILL), at moments of their own, and
one worker that is left runs their tasks again.

Without --vs it measures Curfew alone, at the default lease and at a shorter one.

` + versusHelp + `

  recovery_min, recovery_p50, recovery_max
      from the kill until the task's handler begins again, in s. What takes longer than
      --within is not waited for, and told as "> 240", in JSON as the row's "bound".

Each library decides how long it takes by its default settings. Curfew: a lease of 15 s. asynq:
a lease of 30 s, and 30 s more for clocks that differ; one look a minute at what is over; the
delay of a retry, 15 to 44 s for the first; one look in 5 s at what is to be retried. The bare
script: a lease of 15 s that is renewed each second, as an idle worker of Curfew does.
The kills are spread over 5 s for Curfew and the bare script, and over the minute between two
looks for asynq. A run takes about 4 minutes.`

// recoveryCommand is a benchmark whose workers are processes of this program.
func recoveryCommand() *cli.Command {
	command := benchmark("recovery", "how long a task stands still when the process that runs it is killed; --vs asynq: beside another library", 1,
		[]cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 10, Usage: "how many worker processes are killed"},
			durationFlag("lease", 2*time.Second, "the other lease; 0s: only the default one of 15s; not with --vs"),
			durationFlag("within", 4*time.Minute, "with --vs: the longest that a task is waited for"),
		}, measureRecovery)
	command.Description = recoveryHelp
	return compared(command, rivalry{
		only: []string{"within"},
		not:  map[string]string{"lease": "measures default settings"},
		trial: func(c *cli.Context, at *bench.Place) (bench.Trial, error) {
			within := durationOf(c, "within")
			if within < time.Second || within > time.Hour {
				return bench.Trial{}, usage("--within %v must be from 1s to 1h", within)
			}
			holder, err := holderFor(c, at, defaultLease)
			return bench.RecoveryTrial(bench.RecoveryLoad{Kills: c.Int("kills"), Within: within, Holder: holder}), err
		},
	})
}

func measureRecovery(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
	short := durationOf(c, "lease")
	if short != 0 && short < time.Second {
		return bench.Report{}, usage("--lease %v must be at least 1s, or 0s for the default one only", short)
	}
	at := bench.Place{URL: "redis://" + rdb.(*redis.Client).Options().Addr, Namespace: "bench"}
	all := bench.Report{Bench: "recovery"}
	for _, lease := range []time.Duration{defaultLease, short} {
		if lease == 0 {
			break
		}
		holder, err := holderFor(c, &at, lease)
		if err != nil {
			return all, err
		}
		report, err := bench.Recovery(ctx, rdb, at, c.Int("kills"), lease, holder)
		if err != nil {
			return all, err
		}
		all.Figures = append(all.Figures, report.Figures...)
	}
	return all, nil
}

// holdAt is the variable with the URL of the server: others can read a command line, and a
// URL may hold a password.
const holdAt = "CURFEW_BENCH_REDIS"

// holderFor makes worker processes of this program. The place is read when one is made.
func holderFor(c *cli.Context, at *bench.Place, lease time.Duration) (bench.Holder, error) {
	if kills := c.Int("kills"); kills < 1 || kills > 100 {
		return nil, usage("--kills %d must be from 1 to 100: each is a process", kills)
	}
	program, err := os.Executable()
	return func(system, line string) *exec.Cmd {
		cmd := exec.Command(program, "bench", "hold", system, at.Namespace, line, lease.String())
		cmd.Env = append(os.Environ(), holdAt+"="+at.URL)
		return cmd
	}, err
}

// holdCommand is what recovery kills: a worker that takes a task and keeps it.
func holdCommand() *cli.Command {
	return &cli.Command{
		Name:   "hold",
		Hidden: true,
		Action: func(c *cli.Context) error {
			if c.NArg() != 4 || os.Getenv(holdAt) == "" {
				return usage("bench hold is for bench recovery: it takes a system, a namespace, a queue and a lease, and %s from the environment", holdAt)
			}
			lease, err := time.ParseDuration(c.Args().Get(3))
			if err != nil {
				return usage("%v", err)
			}
			s, err := systemNamed(c.Args().Get(0), lease)
			if err != nil {
				return err
			}
			go func() { // it ends with the program that started it
				io.Copy(io.Discard, os.Stdin)
				os.Exit(exitFailed)
			}()
			at := bench.Place{URL: os.Getenv(holdAt), Namespace: c.Args().Get(1)}
			return bench.Hold(c.Context, s, at, c.Args().Get(2), c.App.Writer)
		},
	}
}
