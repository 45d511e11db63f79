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
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// defaultLease is the default of worker.Config.Lease.
const defaultLease = 15 * time.Second

const recoveryHelp = `Each of several worker processes has one task and is killed (SIGKILL) at a random instant.
Another worker then runs their tasks again.

Without --vs it measures Curfew alone, at the default lease and at that of --lease.

` + versusHelp + `

  recovery_min, recovery_p50, recovery_max
      from the kill until the task's handler begins again, in s. A task that takes longer
      than --within counts as that: the table shows "> 240" with the default of 4m, and the
      JSON shows the row's "bound".

The default settings of each library decide how long this takes. Curfew: a lease of 15 s.
asynq: a lease of 30 s, 30 s more for clocks that differ, a check for ended leases once a
minute, a delay before the retry (15 to 44 s for the first), and a check for due retries
every 5 s. The bare script: a lease of 15 s, renewed every second, as by an idle worker of
Curfew. The kills are spread over 5 s for Curfew and the bare script, and for asynq over the
minute between two checks. A run takes about 4 minutes.`

// recoveryCommand measures killed workers: `curfew-bench recovery`. The workers are processes of
// this program.
func recoveryCommand() *cli.Command {
	command := benchmark("recovery", "how long until a task runs again when its worker process is killed; --vs asynq compares with another library", 1,
		[]cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 10, Usage: "how many worker processes to kill, up to 100"},
			app.DurationFlag("lease", 2*time.Second, "a second lease to measure, at least 1s; 0s: only the default of 15s; not with --vs"),
			app.DurationFlag("within", 4*time.Minute, "with --vs: the longest time to wait for a task, from 1s to 1h"),
		}, measureRecovery)
	command.Description = recoveryHelp
	return compared(command, rivalry{
		only: []string{"within"},
		not:  map[string]string{"lease": "measures default settings"},
		trial: func(c *cli.Context, at *bench.Place) (bench.Trial, error) {
			within := app.DurationOf(c, "within")
			if within < time.Second || within > time.Hour {
				return bench.Trial{}, app.Usage("--within %v must be from 1s to 1h", within)
			}
			holder, err := holderFor(c, at, defaultLease)
			return bench.RecoveryTrial(bench.RecoveryLoad{Kills: c.Int("kills"), Within: within, Holder: holder}), err
		},
	})
}

func measureRecovery(ctx context.Context, rdb redis.UniversalClient, c *cli.Context) (bench.Report, error) {
	short := app.DurationOf(c, "lease")
	if short != 0 && short < time.Second {
		return bench.Report{}, app.Usage("--lease %v must be at least 1s, or 0s for only the default lease", short)
	}
	at := bench.Place{URL: "redis://" + rdb.(*redis.Client).Options().Addr, Namespace: "bench"}
	total := bench.Report{Bench: "recovery"}
	for _, lease := range []time.Duration{defaultLease, short} {
		if lease == 0 {
			break
		}
		holder, err := holderFor(c, &at, lease)
		if err != nil {
			return total, err
		}
		report, err := bench.Recovery(ctx, rdb, at, c.Int("kills"), lease, holder)
		if err != nil {
			return total, err
		}
		total.Figures = append(total.Figures, report.Figures...)
	}
	return total, nil
}

// holdAt is the environment variable that holds the URL of the server. The URL is not an
// argument, because it can hold a password, and other users can read a command line.
const holdAt = "CURFEW_BENCH_REDIS"

// holderFor returns a Holder that makes worker processes of this program. It reads at when it
// makes one, not before.
func holderFor(c *cli.Context, at *bench.Place, lease time.Duration) (bench.Holder, error) {
	if kills := c.Int("kills"); kills < 1 || kills > 100 {
		return nil, app.Usage("--kills %d must be from 1 to 100: each is a process", kills)
	}
	program, err := os.Executable()
	return func(system, line string) *exec.Cmd {
		cmd := exec.Command(program, "hold", system, at.Namespace, line, lease.String())
		cmd.Env = append(os.Environ(), holdAt+"="+at.URL)
		return cmd
	}, err
}

// holdCommand is the worker that recovery kills. It takes a task and keeps it.
func holdCommand() *cli.Command {
	return &cli.Command{
		Name:   "hold",
		Hidden: true,
		Action: func(c *cli.Context) error {
			if c.NArg() != 4 || os.Getenv(holdAt) == "" {
				return app.Usage("hold is used by recovery only: it needs a system, a namespace, a queue and a lease, and %s in the environment", holdAt)
			}
			lease, err := time.ParseDuration(c.Args().Get(3))
			if err != nil {
				return app.Usage("%v", err)
			}
			s, err := systemNamed(c.Args().Get(0), lease)
			if err != nil {
				return err
			}
			go func() { // ends this process when the program that started it ends
				io.Copy(io.Discard, os.Stdin)
				os.Exit(app.ExitFailed)
			}()
			at := bench.Place{URL: os.Getenv(holdAt), Namespace: c.Args().Get(1)}
			return bench.Hold(c.Context, s, at, c.Args().Get(2), c.App.Writer)
		},
	}
}
