package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const workersHelp = `A worker is listed while it has a lease: from its first fetch until it says goodbye, or until its lease has ended and a reaper
has seen that.

    curfew worker ls
    curfew worker drain w1 --wait --timeout 1m`

func Workers() *cli.Command {
	return app.Group("worker", "list workers, and drain them", workersHelp, workerListCommand(), workerGetCommand(), workerDrainCommand())
}

// stateText returns the state of a worker in words. quote makes text that the worker reported safe
// to print.
func stateText(l lines.Worker, quote func(string) string) string {
	if !l.StopAt.IsZero() && l.State != string(queue.WorkerDraining) {
		return "asked to stop"
	}
	return app.OrDash(quote(l.State))
}

// queuesText returns the queues of a worker: mail=3,default=1. quote makes a name harmless.
func queuesText(l lines.Worker, quote func(string) string) string {
	var words []string
	for _, s := range l.Queues {
		word := quote(s.Queue)
		if s.Weight > 0 && len(l.Queues) > 1 {
			word += "=" + strconv.Itoa(s.Weight)
		}
		words = append(words, word)
	}
	return app.OrDash(strings.Join(words, ","))
}

// pidText returns the process id, "" if the worker has not reported it.
func pidText(l lines.Worker) string {
	if l.PID == 0 {
		return ""
	}
	return strconv.Itoa(l.PID)
}

func kindsText(l lines.Worker) string {
	var words []string
	for _, kind := range l.Kinds {
		words = append(words, app.PlainWord(kind))
	}
	return app.OrDash(strings.Join(words, ","))
}

// loadText returns how many tasks a worker holds, and of how many.
func loadText(l lines.Worker) string {
	if l.Concurrency == 0 {
		return strconv.Itoa(l.Running)
	}
	return fmt.Sprintf("%d/%d", l.Running, l.Concurrency)
}

var workerList = app.List[lines.Worker]{
	Columns: []app.Column[lines.Worker]{
		{Name: "worker", Show: func(l lines.Worker) string { return app.PlainWord(l.Worker) }},
		{Name: "state", Show: func(l lines.Worker) string { return stateText(l, app.PlainText) }},
		{Name: "running", Right: true, Show: loadText},
		{Name: "queues", Show: func(l lines.Worker) string { return queuesText(l, app.PlainWord) }},
		{Name: "kinds", Show: kindsText},
		{Name: "host", Wide: true, Show: func(l lines.Worker) string { return app.OrDash(app.PlainText(l.Host)) }},
		{Name: "pid", Wide: true, Right: true, Show: func(l lines.Worker) string { return app.OrDash(pidText(l)) }},
		{Name: "started", Wide: true, Show: func(l lines.Worker) string { return app.OrDash(app.InstantText(l.StartedAt)) }},
		{Name: "lease ends", Wide: true, Show: func(l lines.Worker) string { return app.OrDash(app.InstantText(l.LeaseEndsAt)) }},
	},
	ID: func(l lines.Worker) string { return l.Worker },
}

func workerListCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the workers that have a lease",
		Description: `"running" is how many tasks a worker has, and how many it can have. A worker in another language need not say what it serves.

    curfew worker ls -o wide`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			workers, err := inspect.Workers(c.Context, q)
			if err != nil {
				return err
			}
			return workerList.Print(c, func(yield func(lines.Worker, error) bool) {
				for _, w := range workers {
					if !yield(lines.OfWorker(w), nil) {
						return
					}
				}
			})
		}),
	}
}

func readWorkers(ctx context.Context, q *queue.Queue) (map[string]lines.Worker, error) {
	list, err := inspect.Workers(ctx, q)
	byID := map[string]lines.Worker{}
	for _, w := range list {
		byID[w.ID] = lines.OfWorker(w)
	}
	return byID, err
}

const listsWorkers = "`curfew worker ls` lists those that have a lease"

func workerGetCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show what workers say of themselves",
		ArgsUsage: "WORKER...",
		Description: `It shows those that exist. If one does not exist, it then fails.

    curfew worker get w1`,
		Flags: append(app.NamespaceFlags(), app.FormatFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(1, math.MaxInt, "the ids of one or more workers"), func(c *cli.Context, q *queue.Queue, ids []string) error {
			list, err := readWorkers(c.Context, q)
			if err != nil {
				return err
			}
			return showEach("worker", ids, list, listsWorkers, func(l lines.Worker) error {
				if app.InJSON(c) {
					return app.PrintLine(c, l)
				}
				return facts(c, l.Worker, "state", stateText(l, app.PlainText), "running", loadText(l), "queues", queuesText(l, app.PlainWord), "kinds", kindsText(l), "name", app.PlainText(l.Name),
					"host", app.PlainText(l.Host), "pid", pidText(l), "started", app.InstantText(l.StartedAt), "asked to stop", app.InstantText(l.StopAt), "lease ends", app.InstantText(l.LeaseEndsAt))
			})
		}),
	}
}

func workerDrainCommand() *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "ask a worker to stop: it takes no more tasks, and finishes those that it has",
		ArgsUsage: "WORKER",
		Description: `The worker gets the request at once. With --wait the command ends when the worker is gone, or with exit code 124 at
--timeout. The request stays in force after the timeout.

    curfew worker drain w1
    curfew worker drain w1 --wait --timeout 1m`,
		Flags: append(app.NamespaceFlags(),
			&cli.BoolFlag{Name: "wait", Usage: "wait until the worker is gone"},
			app.DurationFlag("timeout", 0, "wait no longer than this, with --wait; 0: no limit"),
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			if c.IsSet("timeout") && !c.Bool("wait") {
				return app.UsageOf(c, "--timeout needs --wait")
			}
			return app.OnNamespace(app.Takes(1, 1, "the id of one worker"), func(c *cli.Context, q *queue.Queue, words []string) error {
				return drainWorker(c, q, words[0])
			})(c)
		},
	}
}

func drainWorker(c *cli.Context, q *queue.Queue, id string) error {
	if err := q.StopWorker(c.Context, id); errors.Is(err, refusal.ErrNotFound) {
		list, err := readWorkers(c.Context, q)
		if err != nil {
			return err
		}
		return notFound("worker", []string{id}, list, listsWorkers)
	} else if err != nil {
		return err
	}
	state := "draining"
	if c.Bool("wait") {
		if err := awaitGone(c, q, id); err != nil {
			return err
		}
		state = "gone"
	}
	if app.InJSON(c) {
		return app.PrintLine(c, map[string]any{"worker": id, "state": state})
	}
	if state == "draining" {
		state = "asked to stop"
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  %s\n", id, state)
	return err
}

// awaitGone waits until a worker has no lease. It asks the worker again each time, since it may have missed the message.
func awaitGone(c *cli.Context, q *queue.Queue, id string) error {
	ctx, timeout := c.Context, app.DurationOf(c, "timeout")
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, timeout)
		defer stop()
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := q.StopWorker(ctx, id)
		if errors.Is(err, refusal.ErrNotFound) {
			return nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
				continue
			}
		}
		switch {
		case c.Context.Err() != nil:
			return app.Interrupted("%s was asked to stop, and is not gone yet", id)
		case ctx.Err() != nil:
			return cli.Exit(fmt.Sprintf("%s was asked to stop, and is not gone after %v", id, duration.Duration(timeout)), app.ExitTimedOut)
		}
		return err
	}
}
