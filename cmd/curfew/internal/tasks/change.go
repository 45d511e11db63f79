package tasks

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

func Cancel() *cli.Command {
	m := matching{verb: "cancelled", statuses: live, do: cancel, access: queue.AccessProduce}
	return &cli.Command{
		Name:      "cancel",
		Usage:     "end tasks as CANCELLED",
		ArgsUsage: "ID...",
		Description: `A task that has ended otherwise is not changed, and the exit code is 5. The children of a task end with it.

    curfew cancel 0-1MCC5RM000000001 --reason "wrong customer"
` + matchingHelp("cancel --all-matching --queue mail --kind newsletter"),
		Flags:  append(append(app.NamespaceFlags(), &cli.StringFlag{Name: "reason", Usage: "why, which becomes the error of the tasks"}), m.flags()...),
		Action: m.action(changed(queue.AccessProduce, "cancelled", cancel)),
	}
}

// CancelOnly returns the action of a command that cancels some tasks only: check refuses the others, before any is cancelled.
func CancelOnly(what string, check func(c *cli.Context, q *queue.Queue, ids []string) error) cli.ActionFunc {
	return changedOf(queue.AccessProduce, app.Takes(1, 1<<20, what), check, "cancelled", cancel)
}

func cancel(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error) {
	cancellations, err := q.CancelAll(c.Context, ids, c.String("reason"))
	if err != nil {
		return nil, err
	}
	list := make([]outcome, len(ids))
	for i, r := range cancellations {
		o := outcome{Outcome: lines.Outcome{ID: ids[i], Status: r.Status, Changed: r.Done, GraceEnds: r.GraceEnds, Text: "cancelled"}}
		switch {
		case r.Err != nil:
			o = refused(ids[i], r.Err)
		case !r.GraceEnds.IsZero():
			o.Text = "cancelled; its handler can clean up until " + value("grace_at", fmt.Sprint(r.GraceEnds.UnixMilli()))
		case !r.Done && r.Status == queue.Cancelled:
			o.Text = "was cancelled before"
		case !r.Done:
			o.Text, o.code = "it was not cancelled, because it is "+string(r.Status)+" already", app.ExitRefused
		}
		list[i] = o
	}
	return list, nil
}

func Retry() *cli.Command {
	m := matching{verb: "retried", statuses: over, do: retry, access: queue.AccessProduce}
	return &cli.Command{
		Name:      "retry",
		Usage:     "run ended tasks again, as new tasks with the same content and the same time limits from now on",
		ArgsUsage: "ID...",
		Description: `It prints the ids of the new tasks. A task that has not ended cannot be retried: exit code 5.

    curfew retry 0-1MCC5RM000000001
    curfew retry 0-1MCC5RM000000001 --call monday

With --call, the same command again makes no other task, as when it is unknown whether the first one had its effect.
` + matchingHelp("retry --all-matching --status FAILED --queue mail --since 1h"),
		Flags:  append(append(app.NamespaceFlags(), callFlag()), m.flags()...),
		Action: withCall(m.action(changed(queue.AccessProduce, "retried", retry))),
	}
}

func retry(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error) {
	list := make([]outcome, len(ids))
	return together(ids, list, func(id string) (outcome, error) {
		r, err := runAgain(c, q, id)
		if err != nil {
			o := refused(id, err)
			if o.code == app.ExitFailed { // it is not about this task
				return o, err
			}
			return o, nil
		}
		o := lines.Outcome{ID: r.ID, Status: queue.Pending, Changed: true, RetryOf: id, Deadline: r.Deadline, Text: "runs " + id + " again"}
		if !r.New {
			o.Status, o.Changed, o.Text = "", false, "this call has made it before, to run "+id+" again"
		}
		return outcome{Outcome: o}, nil
	})
}

func runAgain(c *cli.Context, q *queue.Queue, id string) (queue.Receipt, error) {
	if c.IsSet("call") {
		return q.RetryAs(c.Context, c.String("call"), id, nil)
	}
	return q.Retry(c.Context, id, nil)
}

func Remove() *cli.Command {
	m := matching{verb: "removed", statuses: over, do: remove, access: queue.AccessProduce}
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove the records of ended tasks before their retention is over",
		ArgsUsage: "ID...",
		Description: `Only tasks that have ended, and whose owner and children have ended, can be removed; otherwise the exit code is 5. A record stays
for a minute after the end of its task.

    curfew rm 0-1MCC5RM000000001
` + matchingHelp("rm --all-matching --status COMPLETED --kind render --before 7d"),
		Flags:  append(app.NamespaceFlags(), m.flags()...),
		Action: m.action(changed(queue.AccessProduce, "removed", remove)),
	}
}

func remove(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error) {
	deletions, err := q.DeleteAll(c.Context, ids)
	if err != nil {
		return nil, err
	}
	list := make([]outcome, len(ids))
	for i, r := range deletions {
		list[i] = outcome{Outcome: lines.Outcome{ID: ids[i], Changed: true, RemovedAt: r.RemovedAt, Text: "removed"}}
		if r.Err != nil {
			list[i] = refused(ids[i], r.Err)
		} else if !r.RemovedAt.IsZero() {
			list[i].Text = "will be removed at " + r.RemovedAt.UTC().Format(time.RFC3339)
		}
	}
	return list, nil
}
