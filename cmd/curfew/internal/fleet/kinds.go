package fleet

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

const kindsHelp = `The kind of a task says which handler runs it. A kind has defaults for tasks whose producer says nothing else, and figures of
how its tasks ended.

    curfew kind ls
    curfew kind set render --timeout 30s --retries 3`

func Kinds() *cli.Command {
	return app.Group("kind", "list kinds of tasks, and set their defaults", kindsHelp, kindListCommand(), kindGetCommand(), kindSetCommand())
}

// stored are the defaults of a kind as they are stored.
type stored map[string]string

// MarshalJSON encodes numbers as numbers.
func (s stored) MarshalJSON() ([]byte, error) {
	var o jsonline.Object
	o.Fields(s)
	return o.Close(), nil
}

// words returns the defaults in words: timeout 30s, max_retries 3.
func (s stored) words() []string {
	var words []string
	for name, value := range s {
		if span, is := strings.CutSuffix(name, "_ms"); is {
			name, value = span, inWords(value)
			if name == "backoff" {
				name = "backoff_delay" // backoff is how it grows
			}
		}
		words = append(words, name+" "+app.PlainText(value))
	}
	slices.Sort(words)
	return words
}

// inWords returns a number of ms as a duration.
func inWords(ms string) string {
	if d, err := duration.Parse(ms + "ms"); err == nil {
		return duration.Duration(d).String()
	}
	return ms
}

// ended counts the ends of tasks of a kind.
type ended struct {
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	TimedOut  int64 `json:"timed_out"`
}

func (e *ended) add(ends []inspect.Ends) {
	for _, end := range ends {
		switch end.Status {
		case queue.Completed:
			e.Completed += end.Count
		case queue.Failed:
			e.Failed += end.Count
		case queue.Cancelled:
			e.Cancelled += end.Count
		}
		if end.Reason == queue.ReasonTimeout {
			e.TimedOut += end.Count
		}
	}
}

// ofQueue counts the ends of tasks of a kind in one queue.
type ofQueue struct {
	Queue string `json:"queue"`
	ended
}

// kindLine is a kind as the commands print it.
type kindLine struct {
	Kind string `json:"kind"`
	ended
	// The bounds of durations are null if no task counts, or if they are above the largest bucket.
	P50      *int64    `json:"p50_ms"`
	P99      *int64    `json:"p99_ms"`
	Queues   []ofQueue `json:"queues"`
	Defaults stored    `json:"fields"`
	Workers  int       `json:"workers"` // live ones that tell that they handle it

	duration inspect.Histogram
	figures  []inspect.KindFigures // by queue
}

// add adds the figures of the kind in one queue.
func (l *kindLine) add(f inspect.KindFigures) {
	l.ended.add(f.Ends)
	of := ofQueue{Queue: f.Queue}
	of.ended.add(f.Ends)
	l.Queues = append(l.Queues, of)
	l.duration = f.Duration.Plus(l.duration)
}

// readKinds returns all kinds that have figures, defaults or a worker.
func readKinds(ctx context.Context, q *queue.Queue) (map[string]*kindLine, error) {
	kinds, err := inspect.Kinds(ctx, q)
	if err != nil {
		return nil, err
	}
	all := map[string]*kindLine{}
	for _, k := range kinds {
		l := &kindLine{Kind: k.Kind, Queues: []ofQueue{}, Defaults: stored{}, Workers: k.Workers}
		maps.Copy(l.Defaults, k.Defaults)
		l.figures = k.Queues
		for _, f := range k.Queues {
			l.add(f)
		}
		l.P50, l.P99 = bound(l.duration, 0.5), bound(l.duration, 0.99)
		all[k.Kind] = l
	}
	return all, nil
}

// bound returns an upper bound for a quantile of the values, in ms. It returns nil if the histogram has no values, or if
// the quantile is above the last bucket.
func bound(h inspect.Histogram, fraction float64) *int64 {
	seconds := h.Quantile(fraction)
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return nil
	}
	ms := int64(math.Round(seconds * 1000))
	return &ms
}

// boundText is bound in words: - if there are no values.
func boundText(h inspect.Histogram, fraction float64) string {
	switch ms := bound(h, fraction); {
	case ms != nil:
		return duration.Duration(time.Duration(*ms) * time.Millisecond).String()
	case h.Count() == 0:
		return "-"
	}
	return ">" + duration.Duration(h.Buckets[len(h.Buckets)-1]*float64(time.Second)).String()
}

var kindList = app.List[*kindLine]{
	Columns: []app.Column[*kindLine]{
		{Name: "kind", Show: func(l *kindLine) string { return app.PlainWord(l.Kind) }},
		count("completed", false, func(l *kindLine) int64 { return l.Completed }),
		count("failed", false, func(l *kindLine) int64 { return l.Failed }),
		count("timed out", false, func(l *kindLine) int64 { return l.TimedOut }),
		count("cancelled", false, func(l *kindLine) int64 { return l.Cancelled }),
		count("workers", false, func(l *kindLine) int64 { return int64(l.Workers) }),
		{Name: "p50", Right: true, Show: func(l *kindLine) string { return boundText(l.duration, 0.5) }},
		{Name: "p99", Right: true, Show: func(l *kindLine) string { return boundText(l.duration, 0.99) }},
		{Name: "queues", Wide: true, Show: func(l *kindLine) string {
			var names []string
			for _, of := range l.Queues {
				names = append(names, app.PlainWord(of.Queue))
			}
			return app.OrDash(strings.Join(names, ","))
		}},
		{Name: "defaults", Wide: true, Show: func(l *kindLine) string { return app.OrDash(strings.Join(l.Defaults.words(), ", ")) }},
	},
	ID: func(l *kindLine) string { return l.Kind },
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
			all, err := readKinds(c.Context, q)
			if err != nil {
				return err
			}
			return kindList.Print(c, func(yield func(*kindLine, error) bool) {
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
			all, err := readKinds(c.Context, q)
			if err != nil {
				return err
			}
			return showEach("kind", names, all, "`curfew kind ls` lists those of which a task was created, or which have defaults or a worker",
				func(l *kindLine) error { return l.show(c) })
		}),
	}
}

func (l *kindLine) show(c *cli.Context) error {
	a := lines.OfFigures(l.figures)
	if app.InJSON(c) {
		return app.PrintLine(c, struct {
			kindLine
			lines.Activity
		}{*l, a})
	}
	var ends []inspect.Ends
	for _, f := range l.figures {
		ends = append(ends, f.Ends...)
	}
	pairs := []string{
		"completed", app.Grouped(l.Completed),
		"failed", app.Grouped(l.Failed) + reasons(ends, queue.Failed),
		"cancelled", app.Grouped(l.Cancelled) + reasons(ends, queue.Cancelled),
		"workers", strconv.Itoa(l.Workers),
	}
	for _, of := range l.Queues {
		pairs = append(pairs, "in "+app.PlainWord(of.Queue), fmt.Sprintf("%s completed, %s failed, %s cancelled", app.Grouped(of.Completed), app.Grouped(of.Failed), app.Grouped(of.Cancelled)))
	}
	pairs = append(append(pairs, "ran", bounds(l.duration)), factsOf(a)...)
	return facts(c, l.Kind, append(pairs, "defaults", app.OrDash(strings.Join(l.Defaults.words(), ", ")))...)
}

// reasons says why tasks ended with a status: " (3 error, 1 timeout execution)".
func reasons(ends []inspect.Ends, status queue.Status) string {
	n := map[string]int64{}
	for _, e := range ends {
		if e.Status == status {
			n[strings.TrimSpace(string(e.Reason)+" "+string(e.TimeoutType))] += e.Count
		}
	}
	var words []string
	for _, why := range slices.Sorted(maps.Keys(n)) {
		words = append(words, app.Grouped(n[why])+" "+why)
	}
	if words == nil {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}
