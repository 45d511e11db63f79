package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

func Deadlines() *cli.Command {
	format := app.ChoiceFlag("output", "table", "table, or json or jsonl: one line for each object", "table", "json", "jsonl")
	format.Aliases = []string{"o"}
	return &cli.Command{
		Name:  "deadlines",
		Usage: "show when live tasks have their deadlines, or which are overdue",
		Description: `The span from now on is divided into parts, and the deadlines in each are counted. Without --within it is the nearest span
that has more than half of all deadlines. Only deadlines of their own count: a child that ends with its owner has none.
With --by queue it reads the tasks themselves, up to --limit. --overdue lists tasks whose deadline is past and whose end is
not written yet: a reaper, or the next call that touches the task, writes it.

    curfew deadlines
    curfew deadlines --within 2m --by queue
    curfew deadlines --overdue`,
		Flags: append(app.NamespaceFlags(),
			app.DurationFlag("within", 0, "the span to show, such as 2m; 0: the nearest that has most deadlines"),
			app.NumberFlag("buckets", 12, 1, 200, "how many parts the span has, 1 to 200"),
			app.ChoiceFlag("by", "", "queue: a line for each queue", "queue"),
			&cli.BoolFlag{Name: "overdue", Usage: "list the tasks whose deadline is past and whose end is not written"},
			app.NumberFlag("limit", 10_000, 1, 100_000, "read at most so many tasks with --by and --overdue, 1 to 100000"),
			format),
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("overdue") && (c.IsSet("within") || c.IsSet("by") || c.IsSet("buckets")):
				return app.UsageOf(c, "--overdue lists tasks: leave --within, --buckets and --by out")
			case c.IsSet("limit") && !c.Bool("overdue") && c.String("by") == "":
				return app.UsageOf(c, "--limit needs --by or --overdue")
			}
			return app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
				if c.Bool("overdue") {
					return listOverdue(c, q)
				}
				return showDeadlines(c, q)
			})(c)
		},
	}
}

func showDeadlines(c *cli.Context, q *queue.Queue) error {
	d, err := inspect.Deadlines(c.Context, q, app.DurationOf(c, "within"), c.Int("buckets"))
	if err != nil {
		return err
	}
	if c.String("by") == "queue" {
		return deadlinesByQueue(c, q, d)
	}
	if app.InJSON(c) {
		l := lines.OfDue(d)
		l.Past, l.Later = &d.Overdue, &d.Later
		return app.PrintLine(c, l)
	}
	var b strings.Builder
	b.WriteString(headline(d) + "\n")
	if d.Sum() > 0 {
		highest := slices.Max(d.Buckets)
		for i, n := range d.Buckets {
			line := fmt.Sprintf("%9s %10s  %s", "+"+spanText(d.From(i).Sub(d.Now)), app.Grouped(n), bar(n, highest, 40))
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err = c.App.Writer.Write([]byte(b.String()))
	return err
}

// headline returns the number of deadlines in words.
func headline(d inspect.DueCounts) string {
	return fmt.Sprintf("%s within %s; %s later, %s overdue", app.Plural(d.Sum(), "deadline", "deadlines"), spanText(d.Within), app.Grouped(d.Later), app.Grouped(d.Overdue))
}

// spanText returns a span in words, to the second if it is longer than a minute.
func spanText(d time.Duration) string {
	if d > time.Minute {
		d = d.Round(time.Second)
	}
	return duration.Duration(d.Round(time.Millisecond)).String()
}

// bar returns a bar for n of most, of up to width characters. Every number but 0 is seen.
func bar(n, most int64, width int) string {
	if n == 0 {
		return ""
	}
	return strings.Repeat("#", max(1, int(float64(n)/float64(most)*float64(width)+0.5)))
}

// strip returns a character for each count, higher the more it is, and a dot for 0.
func strip(counts []int64) string {
	const levels = "▁▂▃▄▅▆▇█"
	high, highest := []rune(levels), int64(0)
	for _, n := range counts {
		highest = max(highest, n)
	}
	var b strings.Builder
	for _, n := range counts {
		if n <= 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune(high[int(float64(n)/float64(highest)*float64(len(high)-1)+0.5)])
	}
	return b.String()
}

func deadlinesByQueue(c *cli.Context, q *queue.Queue, all inspect.DueCounts) error {
	tasks, more, err := inspect.DueTasks(c.Context, q, all.Now, all.Now.Add(all.Within), c.Int("limit"))
	if err != nil {
		return err
	}
	byQueue := map[string]inspect.DueCounts{}
	var names []string
	for _, task := range tasks {
		d, exists := byQueue[task.Queue]
		if !exists {
			d = inspect.DueCounts{Now: all.Now, Within: all.Within, Buckets: make([]int64, len(all.Buckets))}
			names = append(names, task.Queue)
		}
		d.Buckets[bucketOf(all, task.Deadline)]++
		byQueue[task.Queue] = d
	}
	slices.SortFunc(names, func(a, b string) int {
		if n, m := byQueue[a].Sum(), byQueue[b].Sum(); n != m {
			return int(m - n)
		}
		return strings.Compare(a, b)
	})
	if app.InJSON(c) {
		for _, name := range names {
			l := lines.OfDue(byQueue[name])
			l.Queue = &name
			if err := app.PrintLine(c, l); err != nil {
				return err
			}
		}
	} else {
		var b strings.Builder
		b.WriteString(headline(all) + "\n")
		width := len("queue")
		for _, name := range names {
			width = max(width, len(app.OrDash(plain(name))))
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "%-*s  %10s  now%s+%s\n", width, "queue", "deadlines", strings.Repeat(" ", max(len(all.Buckets)-3-1-len(spanText(all.Within)), 1)), spanText(all.Within))
		}
		for _, name := range names {
			fmt.Fprintf(&b, "%-*s  %10s  %s\n", width, app.OrDash(plain(name)), app.Grouped(byQueue[name].Sum()), strip(byQueue[name].Buckets))
		}
		if _, err := c.App.Writer.Write([]byte(b.String())); err != nil {
			return err
		}
	}
	if more {
		app.Note(c, "only the first %s deadlines were read: read more with --limit", app.Grouped(int64(c.Int("limit"))))
	}
	return nil
}

// bucketOf returns the part of the span that an instant is in. The end of a part belongs to it.
func bucketOf(d inspect.DueCounts, at time.Time) int {
	i := 0
	for i < len(d.Buckets)-1 && at.UnixMilli() > d.From(i+1).UnixMilli() {
		i++
	}
	return i
}

var overdueList = app.List[lines.Overdue]{
	Columns: []app.Column[lines.Overdue]{
		{Name: "id", Show: func(l lines.Overdue) string { return app.PlainWord(l.ID) }},
		{Name: "kind", Show: func(l lines.Overdue) string { return app.PlainWord(l.Kind) }},
		{Name: "queue", Show: func(l lines.Overdue) string { return app.PlainWord(l.Queue) }},
		{Name: "status", Show: func(l lines.Overdue) string { return app.PlainWord(l.Status) }},
		{Name: "deadline", Show: func(l lines.Overdue) string { return app.InstantText(l.Deadline) }},
		{Name: "late", Right: true, Show: func(l lines.Overdue) string { return spanText(l.Lag) }},
	},
	ID: func(l lines.Overdue) string { return l.ID },
}

func listOverdue(c *cli.Context, q *queue.Queue) error {
	d, err := inspect.Deadlines(c.Context, q, time.Minute, 1)
	if err != nil {
		return err
	}
	tasks, more, err := inspect.DueTasks(c.Context, q, time.Time{}, d.Now, c.Int("limit"))
	if err != nil {
		return err
	}
	if err := overdueList.Print(c, func(yield func(lines.Overdue, error) bool) {
		for _, t := range tasks {
			if !yield(lines.OfOverdue(t, d.Now), nil) {
				return
			}
		}
	}); err != nil {
		return err
	}
	if more {
		app.Note(c, "only the first %s of %s overdue tasks are listed: list more with --limit", app.Grouped(int64(len(tasks))), app.Grouped(d.Overdue))
	}
	return nil
}
