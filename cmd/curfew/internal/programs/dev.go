package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/demo"
	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

const devHelp = `Starts an in-memory Redis that any Redis client on this machine can reach, a reaper, two workers and an agent whose
task hangs, and prints what happens. It needs nothing else, and keeps nothing. Ctrl-C ends it, with exit code 0.

    curfew dev                                    then paste the line that it prints into another terminal
    curfew dev --no-demo                          only the Redis and a reaper: for your own workers
    curfew dev --redis redis://localhost:6379     the same on a real Redis, in the namespace demo

The workers of the demo take tasks of the queue default, and run those of the kinds greet, hang and agent. So the demo does not
run by itself where others may have tasks, in a namespace that you name on a real Redis, nor for a program that reads the output.
If stdout is no terminal, the output is lines of JSON: one of the kind "ready" with the URL, then the events (docs/reference/events.md).

The in-memory Redis is one node without persistence, users, passwords, TLS, memory limits or FUNCTION commands, and slower than
Redis: use a real Redis to measure, and wherever tasks must not be lost.`

// devPort is the port of the embedded server.
const devPort = 7421

// Dev runs everything in one process.
func Dev() *cli.Command {
	return &cli.Command{
		Name:        "dev",
		Usage:       "run an in-memory Redis, a reaper and a demo in one process, and print what happens",
		Description: devHelp,
		Flags: []cli.Flag{
			app.NumberFlag("port", devPort, 0, 65535, "the port of the in-memory Redis on 127.0.0.1; 0: any free port"),
			&cli.StringFlag{Name: "redis", Usage: "use the Redis with this `URL` (REDIS_URL is not read)"},
			&cli.StringFlag{Name: "namespace", Usage: "the namespace; with --redis it must exist (default: curfew, or demo with --redis)"},
			&cli.BoolFlag{Name: "create", Usage: "with --redis and --namespace: create the namespace if it does not exist"},
			&cli.BoolFlag{Name: "demo", Usage: "run the demo also with --namespace on a real Redis, and if stdout is no terminal"},
			&cli.BoolFlag{Name: "no-demo", Usage: "run no workers and no agent"},
			app.DurationFlag("timeout", 3*time.Second, "how long the demo's task may take, 10ms to 1m"),
			outputOfDev(),
		},
		Action: dev,
	}
}

func outputOfDev() cli.Flag {
	f := app.ChoiceFlag("output", "", "text, or jsonl: a line of JSON for each event (default: text on a terminal, otherwise jsonl)", "text", "jsonl")
	f.Aliases = []string{"o"}
	return f
}

func dev(c *cli.Context) error {
	if err := checkDev(c); err != nil {
		return err
	}
	d, err := openDev(c)
	if err != nil {
		return app.Endless(c, err)
	}
	defer d.close()
	return app.Endless(c, d.run(c.Context))
}

func checkDev(c *cli.Context) error {
	if _, err := app.Arguments(c, app.Nothing); err != nil {
		return err
	}
	real := c.IsSet("redis")
	switch t := app.DurationOf(c, "timeout"); {
	case t < 10*time.Millisecond || t > time.Minute:
		return app.UsageOf(c, "--timeout %v must be from 10ms to 1m", duration.Duration(t))
	case c.Bool("demo") && c.Bool("no-demo"):
		return app.UsageOf(c, "--demo and --no-demo exclude each other: leave one of them out")
	case real && c.IsSet("port"):
		return app.UsageOf(c, "--port is that of the in-memory Redis, and --redis another server: leave one of them out")
	case c.Bool("create") && !(real && c.IsSet("namespace")):
		return app.UsageOf(c, "--create is for --redis with --namespace: leave it out, all others are created anyway")
	case real && c.String("redis") == "":
		return app.UsageOf(c, "--redis is empty: leave it out to use the in-memory Redis")
	case c.IsSet("namespace") && c.String("namespace") == "":
		return app.UsageOf(c, "--namespace must not be empty")
	}
	return nil
}

// development is a running `curfew dev`.
type development struct {
	q       *queue.Queue
	out     io.Writer
	url     string // without a password
	real    bool   // it is not the embedded server
	json    bool
	demo    bool
	timeout time.Duration
	notes   []string // what the reader must know
	close   func()
}

// openDev opens the namespace.
func openDev(c *cli.Context) (*development, error) {
	d := &development{out: c.App.Writer, real: c.IsSet("redis"), timeout: app.DurationOf(c, "timeout")}
	terminal := app.IsTerminal(c.App.Writer)
	d.json = c.String("output") == "jsonl" || c.String("output") == "" && !terminal
	d.demo = c.Bool("demo") || !c.Bool("no-demo") && terminal && !(d.real && c.IsSet("namespace"))
	rdb, err := d.connect(c)
	if err != nil {
		return nil, err
	}
	if err := d.open(c, rdb); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// connect connects to the server of --redis, or starts one.
func (d *development) connect(c *cli.Context) (redis.UniversalClient, error) {
	if d.real {
		rdb, err := app.Connect(c)
		if err != nil {
			return nil, err
		}
		d.url, d.close = withoutPassword(c.String("redis")), func() { rdb.Close() }
		return rdb, nil
	}
	server, err := embedded.StartOn(c.Int("port"))
	if err != nil {
		return nil, fmt.Errorf("%w: choose another port with --port, or any free one with --port 0", err)
	}
	d.url, d.close = "redis://"+server.Addr(), server.Close
	return server.Client(), nil
}

// withoutPassword returns a URL without its password.
func withoutPassword(address string) string {
	scheme, rest, separated := strings.Cut(address, "://")
	if !separated {
		return ""
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest
}

func (d *development) open(c *cli.Context, rdb redis.UniversalClient) (err error) {
	config := queue.Config{Events: queue.EventsAll, Logger: slog.New(slog.DiscardHandler)}
	if d.real && c.IsSet("namespace") {
		d.q, err = app.OpenOn(c, rdb, config)
	} else {
		config.Namespace = c.String("namespace")
		if config.Namespace == "" && d.real {
			config.Namespace = "demo"
		}
		stop := app.CutOff(c, rdb)
		d.q, err = queue.Open(c.Context, rdb, config)
		stop()
	}
	if err != nil {
		return err
	}
	about, err := rdb.FCall(c.Context, "curfew_about", []string{d.q.Root(0)}).Slice()
	if err != nil {
		d.notes = append(d.notes, "FCALL does not work here: this Redis does not have the functions (`curfew functions load` says why)")
	}
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "events" && about[i+1] != "all" {
			d.notes = append(d.notes, fmt.Sprintf("This namespace has --events %v: not everything that happens is shown. Change it with `curfew namespace set`", about[i+1]))
		}
	}
	return nil
}

// run prints events until the context ends, or something fails.
func (d *development) run(ctx context.Context) error {
	at, err := demo.Now(ctx, d.q)
	if err != nil {
		return err
	}
	if err := d.greet(); err != nil {
		return err
	}
	programs := []func(context.Context) error{reaper.New(d.q, reaper.Config{Name: "dev"}).Run}
	if d.demo {
		programs = append(programs, demo.Worker(d.q, "demo-1").Run, demo.Worker(d.q, "demo-2").Run, d.enqueue)
	}
	return demo.Together(ctx, func(ctx context.Context) error {
		l := newLines(d.out, d.q)
		return demo.Follow(ctx, d.q, at, func(batch events.Batch) (bool, error) {
			if d.json {
				return false, writeJSON(d.out, batch)
			}
			return false, l.write(ctx, batch)
		})
	}, programs...)
}

// enqueue enqueues the agent.
func (d *development) enqueue(ctx context.Context) error {
	payload, err := json.Marshal(demo.AgentInput{TimeoutMS: d.timeout.Milliseconds()})
	if err != nil {
		return err
	}
	_, err = d.q.Enqueue(ctx, queue.Task{Kind: "agent", Payload: payload, Timeout: d.timeout + time.Minute})
	return err
}

// greet prints the addresses of the programs, and commands to try.
func (d *development) greet() error {
	if d.json {
		return app.WriteLine(d.out, map[string]any{"kind": "ready", "url": d.url, "namespace": d.q.Namespace()})
	}
	var text strings.Builder
	where := "in-memory Redis: nothing is kept, one node, no users; not for measuring"
	if d.real {
		where = "on your Redis: what happens here stays there"
	}
	title := "curfew"
	if version, stamped := app.Stamped(); stamped {
		title += " " + version
	}
	fmt.Fprintf(&text, "\n  %s   %s\n\n", title, where)
	fmt.Fprintf(&text, "  Redis       %-26s any client, any language\n", app.PlainWord(d.url))
	fmt.Fprintf(&text, "  Namespace   %s\n\n", app.PlainWord(d.q.Namespace()))
	fmt.Fprintf(&text, "  Try         %s\n", d.call())
	fmt.Fprintf(&text, "              curfew demo crash\n")
	for _, note := range d.notes {
		fmt.Fprintf(&text, "  Note        %s\n", note)
	}
	if !d.demo {
		fmt.Fprintf(&text, "\n  No worker runs here: start yours, for example with `curfew work`.\n")
	}
	_, err := fmt.Fprintln(d.out, text.String())
	return err
}

// call returns a line for a shell that enqueues a task which hangs.
func (d *development) call() string {
	server := ""
	if u, err := url.Parse(d.url); err == nil && d.real && (u.Scheme == "redis" || u.Scheme == "rediss") {
		server = " -u " + quoted(d.url)
	} else if err == nil && !d.real {
		server = " -p " + u.Port()
	}
	return fmt.Sprintf("redis-cli%s FCALL curfew_enqueue 1 %s hang payload '{}' timeout 3s", server, quoted(d.q.Root(0)))
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// writeJSON writes a line of JSON for each event.
func writeJSON(out io.Writer, batch events.Batch) error {
	for _, gap := range batch.Gaps {
		if err := app.WriteLine(out, struct {
			Kind string `json:"kind"`
			events.Gap
		}{"events_missed", gap}); err != nil {
			return err
		}
	}
	for _, e := range batch.Events {
		if err := app.WriteLine(out, e); err != nil {
			return err
		}
	}
	return nil
}
