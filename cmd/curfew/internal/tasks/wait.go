package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func Wait() *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until tasks have ended, and print how each one did",
		ArgsUsage: "ID...",
		Description: `--mode says when the wait is over:

    all      all have ended; the exit code is 0 if all completed
    any      one has completed, or none can
    settled  all have ended, however they did: the exit code is 0
    N        this many have completed, or cannot any more

The exit code is 124 if a task timed out, or if --timeout passed; 1 if one failed or was cancelled; 3 if there is no such task.

    curfew wait 0-1MCC5RM000000001 --timeout 1m
    curfew wait 0-1MCC5RM000000001 0-1MCC5RM000000002 --mode any -o json`,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "mode", Value: "all", Usage: "all, any, settled, or how many must complete"},
			app.DurationFlag("timeout", 0, "wait this long at most (default: no limit)"),
			app.ListFlag()),
		Action: func(c *cli.Context) error {
			ids, err := app.Arguments(c, someIDs)
			if err != nil {
				return err
			}
			need, err := needOf(c, len(ids))
			if err != nil {
				return err
			}
			if c.IsSet("timeout") && app.DurationOf(c, "timeout") == 0 {
				return app.UsageOf(c, "--timeout must not be 0: leave it out")
			}
			return app.OnNamespaceAs(queue.AccessProduce, someIDs, func(c *cli.Context, q *queue.Queue, ids []string) error {
				if err := checkIDs(q, ids); err != nil {
					return err
				}
				return waitFor(c, q, ids, need)
			})(c)
		},
	}
}

// needOf returns how many tasks must complete; 0: all must end.
func needOf(c *cli.Context, tasks int) (int, error) {
	switch mode := c.String("mode"); mode {
	case "all", "settled":
		return 0, nil
	case "any":
		return 1, nil
	default:
		n, err := strconv.Atoi(mode)
		if err != nil {
			return 0, app.UsageOf(c, "--mode %q must be all, any, settled, or a number%s", mode, app.DidYouMean(mode, []string{"all", "any", "settled"}))
		}
		if n < 1 || n > tasks {
			return 0, app.UsageOf(c, "--mode %d must be from 1 to the number of tasks, %d", n, tasks)
		}
		return n, nil
	}
}

var endedList = app.List[lines.End]{
	ID: func(e lines.End) string { return e.ID },
	Columns: []app.Column[lines.End]{
		{Name: "id", Show: func(e lines.End) string { return e.ID }},
		{Name: "status", Show: func(e lines.End) string { return string(e.Status) }, Paint: func(e lines.End) app.Colour { return colourOf(e.Status) }},
		{Name: "result", Show: func(e lines.End) string {
			if e.Status == queue.Completed {
				return cell(e.Result)
			}
			return cell([]byte(e.TimeoutType.ErrorText(e.Error)))
		}},
	},
}

// arrival is the result of the wait for one task.
type arrival struct {
	id     string
	result []byte
	err    error
}

// waitFor prints the tasks as they end, until enough have.
func waitFor(c *cli.Context, q *queue.Queue, ids []string, need int) error {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	var limit <-chan time.Time
	if d := app.DurationOf(c, "timeout"); d > 0 {
		limit = time.After(d)
	}
	arrivals := make(chan arrival)
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel()
	for _, id := range ids {
		waits.Go(func() {
			result, err := q.Result(ctx, id)
			select {
			case arrivals <- arrival{id, result, err}:
			case <-ctx.Done():
			}
		})
	}
	completed, open, worst, failed := 0, len(ids), 0, error(nil)
	passed := false
	err := endedList.Print(c, func(yield func(lines.End, error) bool) {
		for open > 0 && (need == 0 || completed < need && completed+open >= need) {
			var a arrival
			select {
			case a = <-arrivals:
			case <-limit:
				passed = true
				return
			case <-ctx.Done():
				yield(lines.End{}, ctx.Err())
				return
			}
			open--
			e, ok := endOf(a.id, a.result, a.err)
			if a.err == nil {
				completed++
			} else {
				worst, failed = worse(worst, failed, endError(a.err))
				if !ok && !errors.Is(a.err, refusal.ErrNotFound) {
					yield(lines.End{}, a.err)
					return
				}
			}
			if ok && !yield(e, nil) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case passed:
		return cli.Exit(fmt.Sprintf("--timeout has passed, and %s not ended", app.Plural(int64(open), "task has", "tasks have")), app.ExitTimedOut)
	case need > 0 && completed >= need, failed == nil, c.String("mode") == "settled" && worst != app.ExitNotFound:
		return nil
	}
	return failed
}

// worse returns the worse of two errors, by their exit codes.
func worse(code int, before, err error) (int, error) {
	is := app.ExitFailed
	var coded cli.ExitCoder
	if errors.As(err, &coded) {
		is = coded.ExitCode()
	}
	if before == nil || indexOf(is) > indexOf(code) {
		return is, err
	}
	return code, before
}

func indexOf(code int) int {
	for i, of := range badness {
		if of == code {
			return i
		}
	}
	return len(badness)
}
