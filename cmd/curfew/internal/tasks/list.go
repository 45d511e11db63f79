package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func List() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list tasks, the newest first in each index",
		Description: `It reads the indexes of the namespace one after the other, and says on stderr how far it looked. The next tasks are printed with
--cursor and the same filters.

    curfew ls --queue mail --status FAILED --since 1h
    curfew ls --timed-out -o id
    curfew ls --agent 0-1MCC5RM000000001

If no live worker serves the queue of a PENDING task that it lists, or none handles its kind, it says so on stderr.`,
		Flags: append(app.NamespaceFlags(), ListFlags(filterNames...)...),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			f, err := FilterOf(c)
			if err != nil {
				return err
			}
			return app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
				return PrintList(c, q, f)
			})(c)
		},
	}
}

// ListFlags returns the flags of a command that lists tasks. The names select some of the flags that filter tasks; the flags of lists are
// always there.
func ListFlags(filters ...string) (flags []cli.Flag) {
	for _, f := range filterFlags() {
		if slices.Contains(filters, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return append(flags,
		app.NumberFlag("limit", 100, 1, math.MaxInt32, "list this many tasks at most"),
		app.NumberFlag("looks", 1_000_000, 1, math.MaxInt32, "look at about this many entries of indexes at most"),
		&cli.StringFlag{Name: "cursor", Usage: "go on behind the tasks that were listed"}, hideFlag(), app.ListFlag())
}

var listed = app.List[inspect.Line]{
	ID: func(l inspect.Line) string { return l.ID },
	Columns: []app.Column[inspect.Line]{
		{Name: "id", Show: func(l inspect.Line) string { return l.ID }},
		{Name: "kind", Show: func(l inspect.Line) string { return app.PlainWord(l.Kind) }},
		{Name: "queue", Show: func(l inspect.Line) string { return app.PlainWord(l.Queue) }},
		{Name: "status", Show: statusOf, Paint: func(l inspect.Line) app.Colour { return colourOf(l.Status) }},
		{Name: "created", Show: func(l inspect.Line) string { return instant(l.CreatedAt) }},
		{Name: "deadline", Show: func(l inspect.Line) string { return instant(l.Until) }},
		{Name: "ended", Show: func(l inspect.Line) string { return instant(l.CompletedAt) }},
		{Name: "epoch", Wide: true, Right: true, Show: func(l inspect.Line) string { return fmt.Sprint(l.Epoch) }},
		{Name: "worker", Wide: true, Show: func(l inspect.Line) string { return app.OrDash(plainText(l.Worker)) }},
		{Name: "index", Wide: true, Show: func(l inspect.Line) string { return l.Index }},
		{Name: "error", Wide: true, Show: func(l inspect.Line) string {
			return app.OrDash(cell([]byte(cmp.Or(l.TimeoutType.ErrorText(l.Error), l.LastError, l.Fields["release_reason"]))))
		}},
	},
}

func statusOf(l inspect.Line) string {
	switch {
	case l.TimedOut:
		return string(l.Status) + " (timeout)"
	case l.Overdue:
		return string(l.Status) + " (overdue)"
	}
	return string(l.Status)
}

func instant(at time.Time) string { return app.OrDash(app.InstantText(at)) }

// PrintList prints up to --limit tasks, and how far it looked.
func PrintList(c *cli.Context, q *queue.Queue, f inspect.Filter) error {
	var page inspect.ListPage
	next, n, looked, broken := c.String("cursor"), 0, 0, 0
	waiting := misrouted{}
	err := listed.Print(c, func(yield func(inspect.Line, error) bool) {
		for n < c.Int("limit") && looked < c.Int("looks") {
			f.Looks = min(10_000, c.Int("looks")-looked)
			got, err := inspect.List(c.Context, q, f, next, min(c.Int("limit")-n, 1000))
			if wrong := new(refusal.InvalidError); errors.As(err, &wrong) && wrong.Field == "page" {
				err = app.UsageOf(c, "--cursor %q is not what ls has printed for these filters", refusal.Clip(next))
			}
			if err != nil {
				yield(inspect.Line{}, err)
				return
			}
			page, next = got, got.Next
			looked, broken = looked+got.Looked, broken+got.Broken
			for _, l := range got.Lines {
				n++
				waiting.add(l)
				if c.Bool("hide-payloads") {
					inspect.Hide(l.Record)
				}
				if !yield(l, nil) {
					return
				}
			}
			if next == "" {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	tellLooked(c, page, next, int64(n), int64(looked), broken)
	if n == 0 && next == "" && f.Queue != "" {
		return warnUnknown(c, q, f.Queue)
	}
	return waiting.warn(c, q)
}

// warnUnknown prints on stderr that a queue does not exist, so that a mistyped name is noticed.
func warnUnknown(c *cli.Context, q *queue.Queue, name string) error {
	stats, err := q.Stats(c.Context)
	if err != nil {
		return err
	}
	var queues []string
	for _, s := range stats.Queues {
		queues = append(queues, s.Queue)
	}
	if !slices.Contains(queues, name) {
		app.Note(c, "there is no queue %q in this namespace%s: `curfew queue ls` lists the queues", name, app.DidYouMean(name, queues))
	}
	return nil
}

func tellLooked(c *cli.Context, page inspect.ListPage, next string, n, looked int64, broken int) {
	if next == "" {
		app.Note(c, "%s; looked at all %s", app.Plural(n, "task", "tasks"), app.Plural(looked, "entry", "entries"))
	} else {
		app.Note(c, "%s so far; looked at %s, up to the index %s; go on with: --cursor %s", app.Plural(n, "task", "tasks"), app.Plural(looked, "entry", "entries"), page.Index, next)
	}
	for _, sentence := range page.Unlisted {
		app.Note(c, "not listed: %s (--agent)", sentence)
	}
	if broken > 0 {
		app.Note(c, "%s cannot be read", app.Plural(int64(broken), "record", "records"))
	}
}
