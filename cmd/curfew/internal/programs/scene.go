package programs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/demo"
	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
)

const sceneHelp = `

What happened is read from the events, and the namespace is audited at the end. If a promise was not kept, the command says which, and
its exit code is 1. The scene has a namespace of its own, demo- and a number, which is removed at the end if the scene succeeded.

    curfew demo `

func crashCommand() *cli.Command {
	return sceneCommand("crash", "kill a worker process that holds five tasks: each ends on its deadline, or runs elsewhere",
		`A worker process claims five tasks and is killed with SIGKILL. Three tasks have a deadline: they end on it. Two have more time: when
the lease of the worker ends, a second later, they are given to another worker, which completes them.`,
		func(c *cli.Context, s *demo.Scene, url string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return demo.Crash(c.Context, s, func(lease time.Duration) *exec.Cmd {
				cmd := exec.Command(self, VictimName, "--namespace", s.Queue.Namespace(), "--lease", lease.String())
				cmd.Env = append(os.Environ(), app.RedisVariables[0]+"="+url) // other users can read a command line
				return cmd
			})
		})
}

func fanoutCommand() *cli.Command {
	return sceneCommand("fanout", "an agent waits for 20 tasks, of which four hang, and wakes on time with what is there",
		`An agent starts 20 tasks and waits for them, but no longer than --timeout. Sixteen answer and four hang. The agent wakes at its limit with
sixteen results, and the tasks that hang are cancelled.`,
		func(c *cli.Context, s *demo.Scene, _ string) error { return demo.Fanout(c.Context, s) })
}

// sceneCommand returns the command of a scene. play gets the URL of the server too.
func sceneCommand(name, about, description string, play func(c *cli.Context, s *demo.Scene, url string) error) *cli.Command {
	return &cli.Command{
		Name:        name,
		Usage:       about,
		Description: description + sceneHelp + name + "\n    curfew demo " + name + " --redis redis://localhost:6379",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "redis", Usage: "use the Redis with this `URL` in place of one in memory (REDIS_URL is not read)"},
			app.DurationFlag("timeout", 2*time.Second, "how long tasks may take, 100ms to 1m"),
		},
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			if t := app.DurationOf(c, "timeout"); t < 100*time.Millisecond || t > time.Minute {
				return app.UsageOf(c, "--timeout %v must be from 100ms to 1m", duration.Duration(t))
			}
			if c.IsSet("redis") && c.String("redis") == "" {
				return app.UsageOf(c, "--redis is empty: leave it out to use a Redis in memory")
			}
			return app.Failure(c, playScene(c, play))
		},
	}
}

// playScene plays a scene in a namespace of its own.
func playScene(c *cli.Context, play func(c *cli.Context, s *demo.Scene, url string) error) error {
	rdb, url, stop, err := sceneServer(c)
	if err != nil {
		return err
	}
	defer stop()
	cut := app.CutOff(c, rdb)
	q, err := queue.Open(c.Context, rdb, queue.Config{Namespace: fmt.Sprintf("demo-%08d", rand.IntN(1e8)), Events: queue.EventsAll, Logger: slog.New(slog.DiscardHandler)})
	cut()
	if err != nil {
		return err
	}
	out := c.App.Writer
	s := &demo.Scene{Queue: q, Timeout: app.DurationOf(c, "timeout"), See: newLines(out, q).write,
		Say: func(format string, args ...any) {
			fmt.Fprintf(out, "  %s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
		}}
	err = play(c, s, url)
	if err != nil && c.Context.Err() == nil && app.Quietly(err) != nil && c.IsSet("redis") {
		return fmt.Errorf("%w; the namespace %s is kept: `curfew namespace rm %s` removes it", err, q.Namespace(), q.Namespace())
	}
	if c.IsSet("redis") {
		err = removeScene(c, rdb, q.Namespace(), err)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, "\n  The scene kept its promises: the events and the audit agree.\n")
	return err
}

// removeScene removes the namespace of a scene, also when it was interrupted.
func removeScene(c *cli.Context, rdb redis.UniversalClient, name string, before error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.Context), 3*time.Second)
	defer stop()
	server, err := operate.Connect(ctx, rdb)
	if err == nil {
		_, _, err = server.Remove(ctx, name, operate.Removal{Force: true})
	}
	if before != nil {
		return before
	}
	return err
}

func sceneServer(c *cli.Context) (rdb redis.UniversalClient, url string, stop func(), err error) {
	if c.IsSet("redis") {
		rdb, err = app.Connect(c)
		if err != nil {
			return nil, "", nil, err
		}
		return rdb, c.String("redis"), func() { rdb.Close() }, nil
	}
	server, err := embedded.Start()
	if err != nil {
		return nil, "", nil, err
	}
	return server.Client(), "redis://" + server.Addr(), server.Close, nil
}

// VictimName is the command of the worker process that `curfew demo crash` kills.
const VictimName = "demo-worker"

// Victim is that process.
func Victim() *cli.Command {
	return &cli.Command{
		Name:   VictimName,
		Usage:  "the worker that curfew demo crash kills",
		Hidden: true,
		Flags:  append(app.NamespaceFlags(), app.DurationFlag("lease", 0, "the worker's lease")),
		Action: app.OnNamespace(app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			return demo.Victim(c.Context, q, app.DurationOf(c, "lease"), os.Stdin, c.App.Writer)
		}),
	}
}
