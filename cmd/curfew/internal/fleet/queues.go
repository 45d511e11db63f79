package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

const queuesHelp = `A queue is a line of tasks. It exists from its first task on, or from its first pause or limit. Its pause and its limits
hold for all workers.

    curfew queue ls
    curfew queue limit mail --running 20 --rate 100/1s --burst 10
    curfew queue pause mail`

func Queues() *cli.Command {
	return app.Group("queue", "list queues, and pause, drain and limit them", queuesHelp,
		queueListCommand(), queueGetCommand(), queuePauseCommand(), queueResumeCommand(), queueDrainCommand(), queueLimitCommand())
}

// servedText returns the number of workers in words, ? if it is not known.
func servedText(l lines.Queue) string {
	if l.Workers == nil {
		return "?"
	}
	return app.Grouped(*l.Workers)
}

// limitsText returns the limits of a queue in words, - if it has none.
func limitsText(l lines.Queue) string {
	var words []string
	if l.MaxRunning > 0 {
		words = append(words, app.Grouped(l.MaxRunning)+" running")
	}
	if l.Rate > 0 {
		word := fmt.Sprintf("%d/%v", l.Rate, duration.Duration(l.Per))
		if l.Burst != l.Rate {
			word += fmt.Sprintf(" burst %d", l.Burst)
		}
		words = append(words, word)
	}
	if l.MaxLength > 0 {
		words = append(words, app.Grouped(l.MaxLength)+" in line")
	}
	if words == nil {
		return "-"
	}
	return strings.Join(words, ", ")
}

func pausedText(l lines.Queue) string {
	if l.Paused == 1 {
		return "paused"
	}
	return "-"
}

// count is a column of a number.
func count[T any](name string, wide bool, of func(T) int64) app.Column[T] {
	return app.Column[T]{Name: name, Wide: wide, Right: true, Show: func(v T) string { return app.Grouped(of(v)) }}
}

var queueList = app.List[lines.Queue]{
	Columns: []app.Column[lines.Queue]{
		{Name: "queue", Show: func(l lines.Queue) string { return app.PlainWord(l.Queue) }},
		count("in line", false, func(l lines.Queue) int64 { return l.Ready }),
		count("running", false, func(l lines.Queue) int64 { return l.Running }),
		count("waiting", false, func(l lines.Queue) int64 { return l.Waiting }),
		count("dead", false, func(l lines.Queue) int64 { return l.Dead }),
		{Name: "workers", Right: true, Show: servedText},
		{Name: "paused", Show: pausedText},
		{Name: "limits", Show: limitsText},
		count("completed", false, func(l lines.Queue) int64 { return l.Completed }),
		count("failed", false, func(l lines.Queue) int64 { return l.Failed }),
		count("timed out", false, func(l lines.Queue) int64 { return l.TimedOut }),
		count("cancelled", true, func(l lines.Queue) int64 { return l.Cancelled }),
		count("enqueued", true, func(l lines.Queue) int64 { return l.Enqueued }),
	},
	ID: func(l lines.Queue) string { return l.Queue },
}

func queueListCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the queues, with how many tasks are where",
		Description: `"waiting" are agents that wait for other tasks, "dead" the records of failed and cancelled tasks that are still kept. The
other counts start when the queue is created; a task that timed out is counted in failed too. "workers" are the live workers
that serve the queue and do not drain, ? if some do not tell what they serve. A note on stderr names queues that have tasks in
line but no worker. Another gives the number of delayed tasks, which are in no line yet.

    curfew queue ls -o wide`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			stats, err := q.Stats(c.Context)
			if err != nil {
				return err
			}
			workers, err := inspect.Workers(c.Context, q)
			if err != nil {
				return err
			}
			if err := queueList.Print(c, func(yield func(lines.Queue, error) bool) {
				for _, s := range stats.Queues {
					if !yield(lines.OfQueue(s).With(workers), nil) {
						return
					}
				}
			}); err != nil {
				return err
			}
			warnUnserved(c, stats.Queues, workers)
			if stats.Delayed > 0 {
				app.Note(c, "%s delayed or given back, and in no line: `curfew ls --status PENDING` lists them", app.Plural(stats.Delayed, "task is", "tasks are"))
			}
			return nil
		}),
	}
}

// warnUnserved names on stderr the queues with tasks in line that no live worker takes.
func warnUnserved(c *cli.Context, queues []queue.QueueStats, workers []inspect.Worker) {
	if len(workers) == 0 {
		ready := int64(0)
		for _, s := range queues {
			ready += s.Ready
		}
		if ready > 0 {
			app.Note(c, "no worker lives: %s in line", app.Plural(ready, "task is", "tasks are"))
		}
		return
	}
	crew, count := inspect.CrewOf(workers), 0
	for _, s := range queues {
		reason := app.Unserved(crew, s.Queue)
		if reason == "" || s.Ready == 0 {
			continue
		}
		if count++; count > 10 {
			app.Note(c, "… and more: `curfew doctor` names them")
			return
		}
		app.Note(c, "%s: %s in line", reason, app.Plural(s.Ready, "task is", "tasks are"))
	}
}

func queueGetCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show all counts and controls of queues",
		ArgsUsage: "QUEUE...",
		Description: `It shows those that exist. If one does not exist, it then fails. The counts from "timeouts" on are explained by
` + "`curfew kind get --help`" + `, and are left out if they are 0.

    curfew queue get mail`,
		Flags: append(app.NamespaceFlags(), app.FormatFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(1, math.MaxInt, "the names of one or more queues"), func(c *cli.Context, q *queue.Queue, names []string) error {
			queues, err := readQueues(c, q)
			if err != nil {
				return err
			}
			workers, err := inspect.Workers(c.Context, q)
			if err != nil {
				return err
			}
			figures, err := inspect.Figures(c.Context, q)
			if err != nil {
				return err
			}
			each := lines.ByQueue(figures)
			return showEach("queue", names, queues, listsQueues, func(l lines.Queue) error {
				return showQueue(c, lines.WholeQueue{Queue: l.With(workers), Activity: lines.OfFigures(each[l.Queue])})
			})
		}),
	}
}

// showEach calls show for each of the names that exists. If others do not, it then returns the error of notFound.
func showEach[T any](what string, names []string, all map[string]T, cure string, show func(T) error) error {
	var missing []string
	for _, name := range names {
		if l, exists := all[name]; !exists {
			missing = append(missing, name)
		} else if err := show(l); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return notFound(what, missing, all, cure)
	}
	return nil
}

func showQueue(c *cli.Context, whole lines.WholeQueue) error {
	if app.InJSON(c) {
		return app.PrintLine(c, whole)
	}
	l := whole.Queue
	held := "-"
	if l.Paused == 1 {
		held = "yes"
	}
	refused := ""
	if l.MaxLength > 0 || l.Refused > 0 {
		refused = app.Grouped(l.Refused)
	}
	return facts(c, l.Queue, append([]string{
		"in line", app.Grouped(l.Ready), "running", app.Grouped(l.Running), "waiting", app.Grouped(l.Waiting), "dead", app.Grouped(l.Dead),
		"workers", servedText(l), "paused", held, "limits", limitsText(l),
		"enqueued", app.Grouped(l.Enqueued), "completed", app.Grouped(l.Completed), "failed", app.Grouped(l.Failed),
		"timed out", app.Grouped(l.TimedOut), "cancelled", app.Grouped(l.Cancelled), "refused", refused}, factsOf(whole.Activity)...)...)
}

// facts prints the name of an object, and below it pairs of a name and a value. It leaves out those without a value.
func facts(c *cli.Context, of string, pairs ...string) error {
	var b strings.Builder
	b.WriteString(app.PlainWord(of) + "\n")
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, "  %-18s %s\n", pairs[i], pairs[i+1])
		}
	}
	_, err := c.App.Writer.Write([]byte(b.String()))
	return err
}

const listsQueues = "`curfew queue ls` lists the queues"

// queues are the queues of a namespace by name.
type queues map[string]lines.Queue

func readQueues(c *cli.Context, q *queue.Queue) (queues, error) {
	stats, err := q.Stats(c.Context)
	byName := queues{}
	for _, s := range stats.Queues {
		byName[s.Queue] = lines.OfQueue(s)
	}
	return byName, err
}

// find returns a queue, or an error that names the queue with the most similar name. unless is the
// advice in that error.
func (all queues) find(name, unless string) (lines.Queue, error) {
	l, exists := all[name]
	if exists {
		return l, nil
	}
	return l, notFound("queue", []string{name}, all, listsQueues+unless)
}

// notFound returns the error for names that do not exist. If it is one, the error has the nearest one of all.
func notFound[T any](what string, names []string, all map[string]T, cure string) error {
	near := ""
	if len(names) == 1 {
		near = app.DidYouMean(names[0], slices.Sorted(maps.Keys(all)))
	}
	return app.NotFound("there is no %s %s in this namespace%s: %s", what, app.QuotedOneOf(names), near, cure)
}
