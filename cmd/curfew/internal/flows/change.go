package flows

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/tasks"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func resumeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "end the wait of a node of a run, with a value",
		ArgsUsage: "RUN NODE",
		Description: `NODE is the name of a node that waits, as ` + "`curfew flow get`" + ` prints it. A node of a part stands behind the node of the part: work/review.
If the node does not wait, nothing is changed, and the exit code is 5.

    curfew flow resume 0-1MCC5RM000000001 review --value '{"approved":true}'`,
		Flags: append(app.NamespaceFlags(), &cli.StringFlag{Name: "value", Usage: "what the node returns, as JSON, - or @FILE (default: null)"}),
		Action: func(c *cli.Context) error {
			t := app.Takes(2, 2, "the id of one run, and the name of one of its nodes")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			var value any
			if c.IsSet("value") {
				body, err := app.Body(c, "--value", c.String("value"))
				if err != nil {
					return err
				}
				jsonx.Checked(body).Decode(&value) // never fails: Body has checked it
			}
			return app.OnNamespaceAs(queue.AccessProduce, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				if err := checkRuns(c, q, words[:1]); err != nil {
					return err
				}
				if err := flow.Resume(c.Context, q, words[0], words[1], value); err != nil {
					return failure(err)
				}
				return app.WriteText(c, fmt.Sprintf("%s %s resumed\n", words[0], app.PlainText(words[1])))
			})(c)
		},
	}
}

func cancelCommand() *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		Usage:     "end runs as CANCELLED, with all their nodes",
		ArgsUsage: "RUN...",
		Description: `It is the same as ` + "`curfew cancel`" + `, for runs only: with the id of another task nothing is cancelled. A run that has ended otherwise
is not changed, and the exit code is 5.

    curfew flow cancel 0-1MCC5RM000000001 --reason "wrong customer"`,
		Flags:  append(app.NamespaceFlags(), &cli.StringFlag{Name: "reason", Usage: "why, which becomes the error of the runs"}, app.ListFlag()),
		Action: tasks.CancelOnly("the ids of one or more runs", checkRuns),
	}
}

// checkRuns returns an error for ids of tasks that are no whole runs. It accepts a task that does
// not exist, because the change itself reports that.
func checkRuns(c *cli.Context, q *queue.Queue, ids []string) error {
	for _, id := range ids {
		r, err := q.Get(c.Context, id)
		switch {
		case errors.Is(err, refusal.ErrNotFound):
			return app.NotFound("there is no run %s: %s", id, app.WhyNoTask)
		case err != nil:
			return err
		case !isRun(r.Kind):
			return cli.Exit(fmt.Sprintf("%s is a task of the kind %s, and no run of a flow: nothing was changed", id, app.PlainWord(r.Kind)), app.ExitRefused)
		}
	}
	return nil
}
