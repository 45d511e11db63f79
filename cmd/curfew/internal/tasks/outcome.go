package tasks

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// outcome is the result of a command for one task.
type outcome struct {
	lines.Outcome
	code int // the exit code for this task
}

var outcomes = app.List[outcome]{
	ID: func(o outcome) string { return o.ID },
	Columns: []app.Column[outcome]{
		{Name: "id", Show: func(o outcome) string { return app.OrDash(o.ID) }},
		{Name: "status", Show: func(o outcome) string { return app.OrDash(string(o.Status)) }, Paint: func(o outcome) app.Colour { return colourOf(o.Status) }},
		{Name: "what", Show: func(o outcome) string { return plainText(o.Text) }},
	},
}

// refused returns the outcome for a task that the command could not change.
func refused(id string, err error) outcome {
	o := outcome{Outcome: lines.Outcome{ID: id, Text: err.Error()}, code: app.ExitFailed}
	switch {
	case errors.Is(err, refusal.ErrNotFound):
		o.Text, o.code = "no such task: "+app.WhyNoTask, app.ExitNotFound
	case errors.Is(err, refusal.ErrInvalid), errors.Is(err, refusal.ErrNotEnded), errors.Is(err, refusal.ErrOwnerEnded), errors.Is(err, refusal.ErrConflict), errors.Is(err, refusal.ErrNeeded):
		var of *refusal.Error
		if errors.As(err, &of) {
			o.Text = of.Err.Error()
		}
		o.code = app.ExitRefused
	}
	return o
}

// badness orders exit codes, because the command exits with its worst task's code.
var badness = []int{0, app.ExitNotFound, app.ExitRefused, app.ExitTimedOut, app.ExitFailed}

// printOutcomes prints an outcome for each task, and returns an error with the worst exit code. verb
// is the intended change, such as cancelled.
func printOutcomes(c *cli.Context, verb string, all iter.Seq2[outcome, error]) error {
	worst, n, failed, first := 0, 0, 0, ""
	err := outcomes.Print(c, func(yield func(outcome, error) bool) {
		for o, err := range all {
			n++
			if err == nil && o.code != 0 {
				if failed++; failed == 1 {
					first = o.ID + ": " + o.Text
				}
				if slices.Index(badness, o.code) > slices.Index(badness, worst) {
					worst = o.code
				}
				if c.String("output") == "id" {
					continue
				}
			}
			if !yield(o, err) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case failed == 0:
		return nil
	case n == 1:
		return cli.Exit(plainText(first), worst)
	}
	return cli.Exit(fmt.Sprintf("%d of %d tasks were not %s: %s", failed, n, verb, plainText(first)), worst)
}

// someIDs is for a command about one or more tasks.
var someIDs = app.Takes(1, 1<<20, "the ids of one or more tasks")

// checkIDs returns an error for texts that cannot be ids of the namespace.
func checkIDs(q *queue.Queue, ids []string) error {
	for _, id := range ids {
		if _, err := names.PartitionIn(id, q.Partitions()); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the action of a command that changes the tasks of its arguments. do returns an outcome for each.
func changed(access queue.Access, verb string, do func(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error)) cli.ActionFunc {
	return changedOf(access, someIDs, nil, verb, do)
}

// changedOf is changed with another description of the arguments, and a check of the tasks before anything is changed.
func changedOf(access queue.Access, t app.Args, check func(*cli.Context, *queue.Queue, []string) error, verb string, do func(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error)) cli.ActionFunc {
	return app.OnNamespaceAs(access, t, func(c *cli.Context, q *queue.Queue, ids []string) error {
		if err := checkIDs(q, ids); err != nil {
			return err
		}
		if check != nil {
			if err := check(c, q, ids); err != nil {
				return err
			}
		}
		app.GoOn(c)
		done := 0
		err := printOutcomes(c, verb, func(yield func(outcome, error) bool) {
			for chunk := range slices.Chunk(ids, 500) {
				list, err := do(c, q, chunk)
				for _, o := range list {
					done++
					if !yield(o, nil) {
						return
					}
				}
				if err != nil {
					yield(outcome{}, err)
					return
				}
			}
		})
		if c.Context.Err() != nil && err != nil {
			return app.Interrupted("%d of %s %s; the command can be repeated", done, app.Plural(int64(len(ids)), "task was", "tasks were"), verb)
		}
		return err
	})
}

// callFlag returns the flag for the name of a change.
func callFlag() cli.Flag {
	return &cli.StringFlag{Name: "call", Usage: "a name of this change, one word: the command again with the same name has no second effect"}
}

// withCall returns an action that checks the flag first.
func withCall(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.IsSet("call") {
			if err := queue.CheckCall(c.String("call")); err != nil {
				return app.UsageOf(c, "--%v", err)
			}
		}
		return action(c)
	}
}
