package tasks

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func Explain() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say why tasks and agents are where they are, and when that ends at the latest; docs/reference/explain.md explains the words",
		ArgsUsage: "ID...",
		Description: `    curfew explain 0-1MCC5RM000000001
    curfew explain 0-1MCC5RM000000001 -o json`,
		Flags: append(app.NamespaceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "the same as -o json"}, hideFlag(), app.FormatFlag()),
		Action: func(c *cli.Context) error {
			ids, err := app.Arguments(c, app.Takes(1, math.MaxInt, "the ids of one or more tasks"))
			if err != nil {
				return err
			}
			for _, id := range ids {
				if _, err := queue.PartitionOf(id); err != nil {
					return app.Usage("%v", err)
				}
			}
			q, stop, err := app.OpenAs(c, queue.AccessRead)
			if err != nil {
				return app.Failure(c, err)
			}
			defer stop()
			return explain(c, q, ids)
		},
	}
}

// decides returns a sentence about the node for which a run of a flow waits, "" for any other task. It is an addition: if the
// run cannot be read, the explanation stands without it.
func decides(c *cli.Context, q *queue.Queue, e *inspect.Explanation) string {
	if !strings.HasPrefix(e.Kind, "flow.") || e.Status.Ended() {
		return ""
	}
	r, err := flow.Read(c.Context, q, e.ID, true)
	if err != nil {
		return ""
	}
	_, _, sentence := flow.Decides(r)
	return sentence
}

// explain prints a line for each task that exists, and then fails if some do not.
func explain(c *cli.Context, q *queue.Queue, ids []string) error {
	var missing []string
	for _, id := range ids {
		e, err := inspect.Explain(c.Context, q, id)
		if errors.Is(err, refusal.ErrNotFound) {
			missing = append(missing, id)
			continue
		}
		if c.Bool("hide-payloads") {
			inspect.Hide(e)
		}
		if err == nil && (c.Bool("json") || app.InJSON(c)) {
			err = app.PrintLine(c, e)
		} else if err == nil {
			_, err = fmt.Fprintln(c.App.Writer, strings.TrimSpace(e.String()+" "+decides(c, q, e)))
		}
		if err != nil {
			return app.Failure(c, err)
		}
	}
	if len(missing) > 0 {
		return app.NoTask(missing...)
	}
	return nil
}
