package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

const kindsHelp = `The kind of a task says which handler runs it. A kind has defaults for tasks whose producer says nothing else, and figures of
how its tasks ended.

    curfew kind ls
    curfew kind set render --timeout 30s --retries 3`

func Kinds() *cli.Command {
	return app.Group("kind", "list kinds of tasks, and set their defaults", kindsHelp, kindListCommand(), kindGetCommand(), kindSetCommand(), kindSuggestCommand())
}

// defaultsText returns the defaults of a kind in words: timeout 30s, max_retries 3.
func defaultsText(s lines.Stored) string {
	var words []string
	for name, value := range s {
		if span, ok := strings.CutSuffix(name, "_ms"); ok {
			name, value = span, inWords(value)
			if name == "backoff" {
				name = "backoff_delay" // backoff is how it grows
			}
		}
		words = append(words, name+" "+app.PlainText(value))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// inWords returns a number of ms as a duration.
func inWords(ms string) string {
	if d, err := duration.Parse(ms + "ms"); err == nil {
		return duration.Duration(d).String()
	}
	return ms
}

// boundText is an upper bound for a quantile in words: - if there are no values.
func boundText(h inspect.Histogram, fraction float64) string {
	switch ms := lines.Bound(h, fraction); {
	case ms != nil:
		return duration.Duration(time.Duration(*ms) * time.Millisecond).String()
	case h.Count() == 0:
		return "-"
	}
	return ">" + duration.Duration(h.Buckets[len(h.Buckets)-1]*float64(time.Second)).String()
}

var kindList = app.List[*lines.Kind]{
	Columns: []app.Column[*lines.Kind]{
		{Name: "kind", Show: func(l *lines.Kind) string { return app.PlainWord(l.Kind) }},
		count("completed", false, func(l *lines.Kind) int64 { return l.Completed }),
		count("failed", false, func(l *lines.Kind) int64 { return l.Failed }),
		count("timed out", false, func(l *lines.Kind) int64 { return l.TimedOut }),
		count("cancelled", false, func(l *lines.Kind) int64 { return l.Cancelled }),
		count("workers", false, func(l *lines.Kind) int64 { return int64(l.Workers) }),
		{Name: "p50", Right: true, Show: func(l *lines.Kind) string { return boundText(l.Duration, 0.5) }},
		{Name: "p99", Right: true, Show: func(l *lines.Kind) string { return boundText(l.Duration, 0.99) }},
		{Name: "queues", Wide: true, Show: func(l *lines.Kind) string {
			var names []string
			for _, of := range l.Queues {
				names = append(names, app.PlainWord(of.Queue))
			}
			return app.OrDash(strings.Join(names, ","))
		}},
		{Name: "defaults", Wide: true, Show: func(l *lines.Kind) string { return app.OrDash(defaultsText(l.Defaults)) }},
	},
	ID: func(l *lines.Kind) string { return l.Kind },
}

func kindListCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the kinds, with how many of their tasks ended and how long they took",
		Description: `A kind is listed once a task of it was created, or if it has defaults or a live worker that handles it. "workers" are the live
workers that tell that they handle it. The counts start when the namespace is created; a task that
timed out is counted in failed too. p50 and p99 are upper bounds of the time that tasks ran, waits of agents included.
The kind - stands for all kinds after the first 1,000 of a partition. A namespace with figures off has no counts.

    curfew kind ls -o wide`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			all, err := lines.ReadKinds(c.Context, q)
			if err != nil {
				return err
			}
			return kindList.Print(c, func(yield func(*lines.Kind, error) bool) {
				for _, name := range slices.Sorted(maps.Keys(all)) {
					if !yield(all[name], nil) {
						return
					}
				}
			})
		}),
	}
}

func kindGetCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show the defaults of kinds, how their tasks ended, and how long they took",
		ArgsUsage: "KIND...",
		Description: `p50 and p99 are upper bounds. "timeouts" are the tasks that timed out, by the limit that passed and what the timeout did;
"attempt timeouts" attempts that took too long and were followed by another one; "late outcomes" what workers reported after the
task had timed out; "agents woken" by the mode of the wait and the reason of its end. What has not happened is left out.

    curfew kind get render`,
		Flags: append(app.NamespaceFlags(), app.FormatFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(1, math.MaxInt, "the names of one or more kinds"), func(c *cli.Context, q *queue.Queue, names []string) error {
			kinds, err := lines.ReadKinds(c.Context, q)
			if err != nil {
				return err
			}
			return showEach("kind", names, kinds, "`curfew kind ls` lists those of which a task was created, or which have defaults or a worker",
				func(l *lines.Kind) error { return showKind(c, l) })
		}),
	}
}

func showKind(c *cli.Context, l *lines.Kind) error {
	sum := l.Whole()
	if app.InJSON(c) {
		return app.PrintLine(c, sum)
	}
	var ends []inspect.Ends
	for _, f := range l.Figures {
		ends = append(ends, f.Ends...)
	}
	pairs := []string{
		"completed", app.Grouped(l.Completed),
		"failed", app.Grouped(l.Failed) + reasons(ends, queue.Failed),
		"cancelled", app.Grouped(l.Cancelled) + reasons(ends, queue.Cancelled),
		"workers", strconv.Itoa(l.Workers),
	}
	for _, figures := range l.Queues {
		pairs = append(pairs, "in "+app.PlainWord(figures.Queue), fmt.Sprintf("%s completed, %s failed, %s cancelled", app.Grouped(figures.Completed), app.Grouped(figures.Failed), app.Grouped(figures.Cancelled)))
	}
	pairs = append(append(pairs, "ran", bounds(l.Duration)), factsOf(sum.Activity)...)
	return facts(c, l.Kind, append(pairs, "defaults", app.OrDash(defaultsText(l.Defaults)))...)
}

// reasons returns the reasons of ends with a status: " (3 error, 1 timeout execution)".
func reasons(ends []inspect.Ends, status queue.Status) string {
	n := map[string]int64{}
	for _, e := range ends {
		if e.Status == status {
			n[strings.TrimSpace(string(e.Reason)+" "+string(e.TimeoutType))] += e.Count
		}
	}
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(n)) {
		words = append(words, app.Grouped(n[reason])+" "+reason)
	}
	if words == nil {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}
