package tasks

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

var (
	live = []queue.Status{queue.Pending, queue.Running, queue.Waiting}
	over = []queue.Status{queue.Completed, queue.Failed, queue.Cancelled}
)

// filterNames are the flags of filterFlags.
var filterNames = []string{"queue", "kind", "status", "timed-out", "unbounded", "agent", "since", "before", "error"}

// filterFlags returns the flags that select tasks.
func filterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "queue", Usage: "tasks of this queue"},
		&cli.StringFlag{Name: "kind", Usage: "tasks of this kind"},
		&cli.StringSliceFlag{Name: "status", Usage: "tasks of this status: PENDING, RUNNING, WAITING, COMPLETED, FAILED or CANCELLED; several with commas"},
		&cli.BoolFlag{Name: "timed-out", Usage: "tasks that timed out"},
		&cli.BoolFlag{Name: "unbounded", Usage: "tasks that have not ended, and that no deadline ends, their own or an owner's"},
		&cli.StringFlag{Name: "agent", Aliases: []string{"owner"}, Usage: "children of the task with this id"},
		&cli.StringFlag{Name: "since", Usage: "tasks that were created or ended at this instant or later; or this long ago, such as 1h"},
		&cli.StringFlag{Name: "before", Usage: "tasks that were created before this instant, and ended before it if they have ended; or this long ago, such as 7d"},
		&cli.StringFlag{Name: "error", Usage: "tasks whose error contains this text"},
	}
}

// FilterOf returns the filter of the flags.
func FilterOf(c *cli.Context) (f inspect.Filter, err error) {
	f = inspect.Filter{Queue: c.String("queue"), Kind: c.String("kind"), TimedOut: c.Bool("timed-out"), Unbounded: c.Bool("unbounded"), Owner: c.String("agent"), ErrorText: c.String("error")}
	for _, name := range filterNames {
		if c.IsSet(name) && name != "timed-out" && name != "unbounded" && name != "status" && c.String(name) == "" {
			return f, app.UsageOf(c, "--%s must not be empty: leave it out", name)
		}
	}
	names := []string{}
	for _, s := range append(live, over...) {
		names = append(names, string(s))
	}
	for _, words := range c.StringSlice("status") {
		for word := range strings.SplitSeq(words, ",") {
			status := queue.Status(strings.ToUpper(word))
			if !slices.Contains(names, string(status)) {
				return f, app.UsageOf(c, "--status %q must be %s%s", word, app.OneOf(names), app.DidYouMean(string(status), names))
			}
			f.Statuses = append(f.Statuses, status)
		}
	}
	if f.Since, err = agoOf(c, "since"); err == nil {
		f.Before, err = agoOf(c, "before")
	}
	return f, err
}

// agoOf returns the instant that a flag means. A duration counts back from now on the clock of this machine.
func agoOf(c *cli.Context, name string) (time.Time, error) {
	word := c.String(name)
	if word == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, word); err == nil {
		return at, nil
	}
	if ms, err := strconv.ParseInt(word, 10, 64); err == nil && len(word) >= 10 {
		return time.UnixMilli(ms), nil
	}
	ago, err := duration.Parse(word)
	if err != nil {
		return time.Time{}, app.UsageOf(c, "--%s %q must be an instant, such as 2026-11-22T10:00:00Z, or a duration, such as 1h", name, word)
	}
	return time.Now().Add(-ago), nil
}
