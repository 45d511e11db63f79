package tasks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// matching is a command that can change all tasks that match a filter.
type matching struct {
	verb     string // cancelled
	statuses []queue.Status
	do       func(c *cli.Context, q *queue.Queue, ids []string) ([]outcome, error)
	access   queue.Access
}

func matchingHelp(example string) string {
	return `
With --all-matching it takes filters in the place of ids. It counts the tasks first. --dry-run ends there. If there are more than
1,000, type their number, or give --yes. If it is interrupted, it says how many were done. The Redis user needs the rights of a
producer and of a reader (docs/how-to/security.md).

    curfew ` + example + ` --dry-run
    curfew ` + example
}

// flags returns the flags for many tasks, and that for the format.
func (m matching) flags() []cli.Flag {
	return append(append([]cli.Flag{&cli.BoolFlag{Name: "all-matching", Usage: "all tasks that match the filters below"}}, filterFlags()...),
		&cli.BoolFlag{Name: "dry-run", Usage: "with --all-matching: print how many match, and change nothing"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "with --all-matching: do not ask"},
		app.ListFlag())
}

// action returns the action of the command. some is that for ids.
func (m matching) action(some cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if !c.Bool("all-matching") {
			for _, name := range append([]string{"dry-run", "yes"}, filterNames...) {
				if c.IsSet(name) {
					return app.UsageOf(c, "--%s needs --all-matching, and no ids", name)
				}
			}
			return some(c)
		}
		if c.Args().Present() {
			return app.UsageOf(c, "--all-matching takes filters in the place of ids: leave out %s", app.PlainWord(c.Args().First()))
		}
		if c.Bool("yes") && c.Bool("dry-run") {
			return app.UsageOf(c, "--yes changes tasks and --dry-run does not: leave one of them out")
		}
		f, err := FilterOf(c)
		if err != nil {
			return err
		}
		for _, s := range f.Statuses {
			if !slices.Contains(m.statuses, s) {
				return app.UsageOf(c, "a task that is %s cannot be %s: leave out --status %s", s, m.verb, s)
			}
		}
		ended := m.statuses[0].Ended() // those of a command are all ended, or all live
		switch {
		case f.Unbounded && ended:
			return app.UsageOf(c, "an unbounded task has not ended, and cannot be %s: leave out --unbounded", m.verb)
		case f.TimedOut && !ended:
			return app.UsageOf(c, "a task that timed out has ended, and cannot be %s: leave out --timed-out", m.verb)
		}
		if f.Statuses == nil {
			f.Statuses = m.statuses
		}
		return app.OnNamespaceAs(m.access, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			_, stop, err := app.OpenAs(c, queue.AccessRead) // to list needs more rights than to change
			if err != nil {
				return err
			}
			stop()
			return m.run(c, q, f)
		})(c)
	}
}

// run counts the tasks, asks, and changes them: no more than it has counted, and no hook of a task that it has changed.
func (m matching) run(c *cli.Context, q *queue.Queue, f inspect.Filter) error {
	n, unlisted, err := m.count(c, q, f)
	if err != nil {
		return err
	}
	for _, sentence := range unlisted {
		app.Note(c, "not counted: %s (--agent)", sentence)
	}
	if c.Bool("dry-run") {
		if strings.HasPrefix(c.String("output"), "json") {
			return app.PrintLine(c, map[string]any{"count": n})
		}
		_, err := fmt.Fprintf(c.App.Writer, "%s would be %s\n", app.Plural(n, "task", "tasks"), m.verb)
		return err
	}
	if err := app.ConfirmMany(c, n, "task", m.verb, "no task was "+m.verb); err != nil {
		return err
	}
	return m.all(c, q, f, n)
}

func (m matching) count(c *cli.Context, q *queue.Queue, f inspect.Filter) (n int64, unlisted []string, err error) {
	counter := app.NewCounter(c)
	defer counter.Clear()
	err = inspect.Each(c.Context, q, f, func(page inspect.ListPage) error {
		n += int64(len(page.Lines))
		unlisted = page.Unlisted
		counter.Show("counted %s", app.Plural(n, "task", "tasks"))
		return c.Context.Err()
	})
	return n, unlisted, err
}

// errEnough ends a walk when as many tasks were changed as were counted.
var errEnough = errors.New("enough")

// hookOf reports whether a task is a hook of one of these tasks, or of a child that ended with one
// of them.
func hookOf(id string, tasks map[string]bool) bool {
	task, _, hook := strings.Cut(id, "!")
	for hook && task != "" {
		if tasks[task] {
			return true
		}
		task = task[:max(strings.LastIndexByte(task, '.'), 0)]
	}
	return false
}

func (m matching) all(c *cli.Context, q *queue.Queue, f inspect.Filter, n int64) error {
	app.GoOn(c)
	counter := app.NewCounter(c)
	var met, done int64
	changed := map[string]bool{}
	var stopped error // why the walk ended
	err := printOutcomes(c, m.verb, func(yield func(outcome, error) bool) {
		stopped = inspect.Each(c.Context, q, f, func(page inspect.ListPage) error {
			var ids []string
			for _, l := range page.Lines {
				if int64(len(ids)) < n-met && !hookOf(l.ID, changed) {
					ids = append(ids, l.ID)
				}
			}
			met += int64(len(ids))
			if len(ids) > 0 {
				list, err := m.do(c, q, ids)
				counter.Clear()
				for _, o := range list {
					if o.Changed {
						done++
						changed[o.ID] = true
					}
					if !yield(o, nil) {
						return errEnough
					}
				}
				if err != nil {
					return err
				}
			}
			counter.Show("%s %s of %s", m.verb, app.Grouped(done), app.Grouped(n))
			if met >= n {
				return errEnough
			}
			return c.Context.Err()
		})
		counter.Clear()
		if stopped == errEnough {
			stopped = nil
		}
		if stopped != nil {
			yield(outcome{}, stopped)
		}
	})
	text := fmt.Sprintf("%s of %s %s", app.Grouped(done), app.Plural(n, "task was", "tasks were"), m.verb)
	if stopped != nil && c.Context.Err() != nil {
		return app.Interrupted("%s; run it again for the others", text)
	}
	if err == nil {
		app.Note(c, "%s", text)
	}
	return err
}
