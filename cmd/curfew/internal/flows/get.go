package flows

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "print a run as a tree: the phase of each node, its attempts, and the time that is left",
		ArgsUsage: "RUN",
		Description: `A run within a run stands below its node. A node that has not begun is Created, and says what it waits for.

    curfew flow get 0-1MCC5RM000000001
    curfew flow get 0-1MCC5RM000000001 --watch
    curfew flow get 0-1MCC5RM000000001 --json

--watch prints the run again each time it has changed, until it has ended. On a terminal it replaces what it has printed.`,
		Flags: append(app.NamespaceFlags(),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print the run again when it changes, until it has ended"},
			app.DurationFlag("every", time.Second, "with --watch: the time between two looks, 100ms to 1h"),
			&cli.BoolFlag{Name: "json", Usage: "the same as -o json"},
			&cli.BoolFlag{Name: "hide-payloads", Usage: "leave out what users have put into tasks: results and texts of errors"},
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, aRun); err != nil {
				return err
			}
			if every := app.DurationOf(c, "every"); every < 100*time.Millisecond || every > time.Hour {
				return app.UsageOf(c, "--every %v must be from 100ms to 1h", duration.Duration(every))
			}
			if c.IsSet("every") && !c.Bool("watch") {
				return app.UsageOf(c, "--every needs --watch")
			}
			return app.OnNamespaceAs(queue.AccessRead, aRun, func(c *cli.Context, q *queue.Queue, words []string) error {
				v := &viewer{c: c, q: q, id: words[0], json: c.Bool("json") || app.InJSON(c)}
				if c.Bool("watch") {
					return v.watch()
				}
				_, err := v.show()
				return err
			})(c)
		},
	}
}

// viewer prints a run.
type viewer struct {
	c    *cli.Context
	q    *queue.Queue
	id   string
	json bool
	said string // what was printed last, without the times that pass by themselves
}

// show prints the run if it has changed since the last time, and reports whether it has ended.
func (v *viewer) show() (ended bool, err error) {
	r, err := readRun(v.c, v.q, v.id)
	if err != nil {
		return false, err
	}
	e, err := inspect.Explain(v.c.Context, v.q, v.id)
	if err != nil {
		return false, err
	}
	ended = r.Record != nil && r.Record.Status.Ended()
	line := lines.OfRun(r, v.c.Bool("hide-payloads"))
	text := string(jsonx.Encode(line))
	clear := v.c.Bool("watch") && app.Redraws(v.c.App.Writer) && !v.json
	if text == v.said && !clear {
		return ended, nil
	}
	first := v.said == ""
	v.said = text
	switch {
	case v.json:
		return ended, app.PrintLine(v.c, line)
	case clear:
		err = app.WriteText(v.c, "\x1b[H\x1b[2J")
	case !first:
		err = app.WriteText(v.c, "\n")
	}
	if err != nil {
		return ended, err
	}
	return ended, draw(v.c, r, e.Now)
}

// watch shows the run until it has ended. It rests nine times as long as a look takes, so that a large run does not keep Redis busy.
func (v *viewer) watch() error {
	for {
		began := time.Now()
		ended, err := v.show()
		if err != nil || ended {
			return err
		}
		if err := rest(v.c.Context, max(app.DurationOf(v.c, "every"), 9*time.Since(began))); err != nil {
			return app.Interrupted("the run continues")
		}
	}
}

// rest waits for a time, or until the context ends.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// draw prints a run as a tree.
func draw(c *cli.Context, r *flow.Run, now time.Time) error {
	if err := app.WriteText(c, headline(r, now)+"\n"); err != nil {
		return err
	}
	return branches.Print(c, app.All(treeOf(r, now, c.Bool("hide-payloads"))))
}
