package programs

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

const reapHelp = `Ends what is out of time, gives back the tasks of dead workers, starts what is delayed, and removes what
is not kept any longer, until SIGINT or SIGTERM. Workers in Go do this themselves. Run two of these, on
different hosts, if your workers are in other languages (docs/reference/protocol.md). Any number may run: one has the
turn, and the others are spares. If none runs, no task outlives its deadline, but it may be noticed late.

    REDIS_URL=redis://reaper:secret@10.0.0.1:6379 curfew reap --namespace shop

It goes on when Redis is away, and says so. It ends with an error if Redis refuses it for a reason that waiting
does not cure: a wrong password, a missing right (docs/how-to/security.md has the rights of a reaper), no such namespace.`

func Reap() *cli.Command {
	return &cli.Command{
		Name:        "reap",
		Usage:       "keep the time of a namespace whose workers are not in Go, until it is interrupted",
		Description: reapHelp,
		Flags: append(append(app.NamespaceFlags(), exporterFlags()...),
			&cli.BoolFlag{Name: "create", Usage: "create the namespace if it does not exist, with the defaults of curfew namespace create"},
			app.NumberFlag("batch", 0, 1, 250, "how many tasks one sweep ends at most, of each clock (default: 100, and 250 while more is due)"),
			app.DurationFlag("fallback", 500*time.Millisecond, "the longest time between two sweeps"),
			&cli.StringFlag{Name: "name", Usage: "the beginning of the reaper's name in Redis (default: the name of the host)"}),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			if err := checkReap(c); err != nil {
				return err
			}
			logger := app.ProgramLogger(c)
			exported, err := startExporter(c, logger)
			if err != nil {
				return err
			}
			defer exported.close()
			rdb, err := app.Connect(c)
			if err != nil {
				return err
			}
			defer rdb.Close()
			return reap(c, rdb, exported, logger)
		},
	}
}

func checkReap(c *cli.Context) error {
	if f := app.DurationOf(c, "fallback"); f < time.Millisecond || f > time.Hour {
		return app.Usage("--fallback %v must be from 1ms to 1h", duration.Duration(f))
	}
	return nil
}

// reap opens the namespace and sweeps until the context ends.
func reap(c *cli.Context, rdb redis.UniversalClient, exported *exporter, logger *slog.Logger) error {
	q, err := openToReap(c, rdb, logger)
	if err != nil || c.Context.Err() != nil {
		return app.Endless(c, err)
	}
	if err := exported.addProcess(q); err != nil {
		return err
	}
	logger.Info("The reaper runs", "namespace", q.Namespace(), "partitions", q.Partitions(), "fallback", app.DurationOf(c, "fallback").String())
	var timedOut, givenBack, started atomic.Int64
	err = reaper.New(q, reaper.Config{Batch: c.Int("batch"), Fallback: app.DurationOf(c, "fallback"), Name: c.String("name"),
		Observe: func(_ int, s reaper.Swept) {
			timedOut.Add(int64(s.TimedOut))
			givenBack.Add(int64(s.GivenBack))
			started.Add(int64(s.Started))
		}}).Run(c.Context)
	logger.Info("The reaper stopped", "timed_out", timedOut.Load(), "given_back", givenBack.Load(), "started", started.Load())
	return app.Endless(c, err)
}

// openToReap opens the namespace. While Redis is away it tries again, until the context ends.
func openToReap(c *cli.Context, rdb redis.UniversalClient, logger *slog.Logger) (*queue.Queue, error) {
	slow := time.AfterFunc(500*time.Millisecond, func() {
		logger.Warn("Redis does not answer yet: trying again; give its address with --redis or REDIS_URL")
	})
	defer slow.Stop()
	for {
		q, err := app.OpenOn(c, rdb, queue.Config{Access: queue.AccessReap, Logger: logger})
		if !app.IsAway(err) || c.Context.Err() != nil {
			return q, err
		}
		logger.Error("Cannot open the namespace: trying again", "error", err) // about every five seconds, for so long Open waits
		select {
		case <-c.Context.Done():
			return nil, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}
