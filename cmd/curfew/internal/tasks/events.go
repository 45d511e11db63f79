package tasks

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

func Events() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "print what happened, one line for each event; docs/reference/events.md explains the events",
		Description: `    curfew events -n 20
    curfew events --from now -f -o jsonl`,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "from", Usage: "a cursor that an earlier run printed, or now (default: the oldest event kept)"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "do not end; wait for new events"},
			hideFlag(),
			app.NumberFlag("n", 0, 0, math.MaxInt, "end after this many events; 0: no limit"),
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			// Only a command that follows ends by an interrupt. Otherwise the events that it has not printed are missing.
			end := app.Failure
			if c.Bool("follow") {
				end = app.Endless
			}
			q, stop, err := app.OpenAs(c, queue.AccessRead)
			if err != nil {
				return end(c, err)
			}
			defer stop()
			tell := tellText
			if app.InJSON(c) {
				tell = newTellJSON()
			}
			if c.Bool("hide-payloads") {
				tell = hiding(tell)
			}
			err = follow(c.Context, q, events.Cursor(c.String("from")), c.Int("n"), c.Bool("follow"), c.App.Writer, tell)
			return end(c, cmp.Or(err, c.Context.Err()))
		},
	}
}

// teller writes a batch. end is true for the last one.
type teller func(w io.Writer, batch events.Batch, end bool) error

// hiding returns a teller that hides texts of users.
func hiding(tell teller) teller {
	return func(w io.Writer, batch events.Batch, end bool) error {
		for i := range batch.Events {
			inspect.Hide(&batch.Events[i])
		}
		return tell(w, batch, end)
	}
}

// follow writes batches until n events are written or ctx ends, and, unless endless, until no event
// is left.
func follow(ctx context.Context, q *queue.Queue, at events.Cursor, n int, endless bool, w io.Writer, tell teller) error {
	out := bufio.NewWriter(w)
	for count := 0; ; {
		want := 1000
		if n > 0 {
			want = min(want, n-count)
		}
		var wait time.Duration
		if endless {
			wait = time.Minute
		}
		batch, err := events.Read(ctx, q, at, want, wait)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err != nil && at == events.Oldest && len(batch.Events) == 0 && len(batch.Gaps) == 0 {
			return nil // nothing was read
		}
		count += len(batch.Events)
		at = batch.Next
		end := err != nil || n > 0 && count >= n || !endless && len(batch.Events) == 0 && len(batch.Gaps) == 0
		if len(batch.Events) > 0 || len(batch.Gaps) > 0 || end {
			if err := tell(out, batch, end); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// newTellJSON returns a function that writes one line for each event, and after each batch a line
// with the cursor if it has changed. The kind of a line distinguishes the two.
func newTellJSON() teller {
	var cursor events.Cursor
	return func(w io.Writer, batch events.Batch, _ bool) error {
		if err := tellBatch(w, batch); err != nil || batch.Next == cursor {
			return err
		}
		cursor = batch.Next
		return app.WriteLine(w, map[string]string{"kind": "cursor", "cursor": string(cursor)})
	}
}

func tellBatch(w io.Writer, batch events.Batch) error {
	for _, gap := range batch.Gaps {
		if err := app.WriteLine(w, struct {
			Kind string `json:"kind"`
			events.Gap
		}{"events_missed", gap}); err != nil {
			return err
		}
	}
	for _, e := range batch.Events {
		if err := app.WriteLine(w, e); err != nil {
			return err
		}
	}
	return nil
}

// tellText writes one line for each event, for people, and at the end the cursor.
func tellText(w io.Writer, batch events.Batch, end bool) error {
	for _, gap := range batch.Gaps {
		fmt.Fprintf(w, "  missed: %s\n", gapText(gap))
	}
	for _, e := range batch.Events {
		words := []string{instant(e.At), wordOrDash(e.Kind), wordOrDash(e.TaskID), wordOrDash(e.TaskKind), wordOrDash(e.Queue),
			fmt.Sprintf("epoch=%d attempt=%d", e.Epoch, e.Attempt)}
		if e.Worker != "" {
			words = append(words, "worker="+app.PlainWord(e.Worker))
		}
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			words = append(words, app.PlainWord(name)+"="+app.PlainWord(e.Fields[name]))
		}
		if _, err := fmt.Fprintln(w, strings.Join(words, "  ")); err != nil {
			return err
		}
	}
	if end {
		_, err := fmt.Fprintf(w, "continue with: --from %s\n", batch.Next)
		return err
	}
	return nil
}

func wordOrDash(text string) string {
	if text == "" {
		return "-" // an event of a queue has no task
	}
	return app.PlainWord(text)
}

func gapText(gap events.Gap) string {
	if gap.SetBack {
		return fmt.Sprintf("the stream of partition %d was set back (data was lost, or a replica became master); reading again from its oldest event", gap.Partition)
	}
	return fmt.Sprintf("%d events of partition %d were trimmed before they were read; the oldest kept is %s", gap.Missed, gap.Partition, gap.Oldest)
}
