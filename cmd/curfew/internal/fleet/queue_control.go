package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

var oneQueue = app.Takes(1, 1, "the name of one queue")

// controlFlags returns the flags of a command that changes a queue.
func controlFlags() []cli.Flag {
	return append(app.NamespaceFlags(),
		&cli.BoolFlag{Name: "force", Usage: "do it even if the queue does not exist yet; it applies once the queue has a task"},
		app.FormatFlag())
}

// onQueue returns the action of a command that changes a queue, which must exist unless --force is given.
func onQueue(do func(c *cli.Context, q *queue.Queue, l lines.Queue) error) cli.ActionFunc {
	return app.OnNamespace(oneQueue, func(c *cli.Context, q *queue.Queue, words []string) error {
		list, err := readQueues(c, q)
		if err != nil {
			return err
		}
		l, err := list.find(words[0], ", and --force is for one that has had no task yet")
		if err != nil && !c.Bool("force") {
			return err
		}
		l.Queue = words[0]
		return do(c, q, l)
	})
}

// printControlled prints a queue after a change of its controls. did describes the change.
func printControlled(c *cli.Context, q *queue.Queue, name, did string, n queue.Controlled) error {
	if app.InJSON(c) {
		list, err := readQueues(c, q)
		if err != nil {
			return err
		}
		return app.PrintLine(c, list[name])
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  %s: %s in line\n", name, did, app.Plural(n.Ready, "task", "tasks"))
	return err
}

func queuePauseCommand() *cli.Command {
	return &cli.Command{
		Name:      "pause",
		Usage:     "let a queue give no tasks until it is resumed",
		ArgsUsage: "QUEUE",
		Description: `Tasks that run go on. Tasks in line stay there, and end at their deadlines.

    curfew queue pause mail`,
		Flags: controlFlags(),
		Action: onQueue(func(c *cli.Context, q *queue.Queue, l lines.Queue) error {
			n, err := q.Pause(c.Context, l.Queue)
			if err != nil {
				return err
			}
			return printControlled(c, q, l.Queue, "paused", n)
		}),
	}
}

func queueResumeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "let a paused queue give tasks again",
		ArgsUsage: "QUEUE",
		Description: `Workers take its tasks again at once.

    curfew queue resume mail`,
		Flags: controlFlags(),
		Action: onQueue(func(c *cli.Context, q *queue.Queue, l lines.Queue) error {
			n, err := q.Resume(c.Context, l.Queue)
			if err != nil {
				return err
			}
			return printControlled(c, q, l.Queue, "resumed", n)
		}),
	}
}

func queueDrainCommand() *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "cancel all tasks in the line of a queue",
		ArgsUsage: "QUEUE",
		Description: `Tasks that run go on. Delayed tasks stay, and so do those that join the line meanwhile. It asks for the name of the queue
before it does anything, unless --yes is given.

    curfew queue drain mail --reason "sent by hand" --yes`,
		Flags: append(controlFlags(),
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.StringFlag{Name: "reason", Value: "drained", Usage: "why, as the cancelled tasks will say"}),
		Action: onQueue(drain),
	}
}

func drain(c *cli.Context, q *queue.Queue, l lines.Queue) error {
	if !c.Bool("yes") {
		text := fmt.Sprintf("This cancels %s in line in %s. Type the name of the queue to go on: ", app.Plural(l.Ready, "task", "tasks"), app.PlainWord(l.Queue))
		if err := app.Confirm(c, app.Question{Text: text, Wants: []string{l.Queue}, What: "the name of the queue", Nothing: "nothing was changed"}); err != nil {
			return err
		}
	}
	n, err := q.Drain(c.Context, l.Queue, c.String("reason"))
	cancelled := app.Plural(n, "task", "tasks")
	switch {
	case err != nil && c.Context.Err() != nil:
		return app.Interrupted("%s cancelled and counted; `curfew queue drain %s` cancels the rest", cancelled, l.Queue)
	case err != nil && n > 0:
		return fmt.Errorf("%w; %s cancelled and counted: drain again", err, cancelled)
	case err != nil:
		return err
	case app.InJSON(c):
		return app.PrintLine(c, map[string]any{"queue": l.Queue, "cancelled": n})
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s  drained: %s cancelled\n", l.Queue, cancelled)
	return err
}

func queueLimitCommand() *cli.Command {
	return &cli.Command{
		Name:      "limit",
		Usage:     "limit how many tasks of a queue run at once, start in a time, and are in line",
		ArgsUsage: "QUEUE",
		Description: `A limit holds for all workers together, and applies to the tasks that are claimed from now on. What is not named stays as it
is; 0 or none removes a limit. The partitions share a limit, so it must be at least their number, and should be a multiple.

While --length tasks are in line, new tasks are refused, and the producer can try again later. Children of agents, hooks and
retries are not refused. Delayed tasks are not in line until they start.

    curfew queue limit mail --running 20 --rate 100/1s --burst 10
    curfew queue limit mail --length 10000
    curfew queue limit mail --rate none`,
		Flags: append(controlFlags(),
			&cli.StringFlag{Name: "running", Usage: "how many run at once; 0 or none: no limit"},
			&cli.StringFlag{Name: "rate", Usage: "how many start in a time, such as 10/1s; 0 or none: no limit"},
			&cli.StringFlag{Name: "length", Usage: "how many are in line before new tasks are refused; 0 or none: no limit"},
			&cli.StringFlag{Name: "burst", Usage: "how many start at once after a rest, with --rate (default: as many as the rate)"}),
		Action: func(c *cli.Context) error {
			limits, err := limitsOf(c)
			if err != nil {
				return err
			}
			return onQueue(func(c *cli.Context, q *queue.Queue, l lines.Queue) error { return setLimits(c, q, l.Queue, limits) })(c)
		},
	}
}

// limits are the limits to set. A nil limit is not changed.
type limits struct {
	running, length *int
	rate            *queue.Rate
}

// limitsOf reads the flags before anything is changed, so that a wrong one changes nothing.
func limitsOf(c *cli.Context) (l limits, err error) {
	if !c.IsSet("running") && !c.IsSet("rate") && !c.IsSet("length") {
		if c.IsSet("burst") {
			return l, app.UsageOf(c, "--burst needs --rate")
		}
		return l, app.UsageOf(c, "queue limit needs --running, --rate or --length")
	}
	if l.running, err = numberOf(c, "running", "20"); err != nil {
		return l, err
	}
	if l.length, err = numberOf(c, "length", "10000"); err != nil {
		return l, err
	}
	if c.IsSet("rate") {
		if l.rate, err = rateOf(c); err != nil {
			return l, err
		}
	}
	if c.IsSet("burst") {
		n, err := strconv.Atoi(c.String("burst"))
		switch {
		case l.rate == nil || *l.rate == (queue.Rate{}):
			return l, app.UsageOf(c, "--burst needs --rate")
		case err != nil || n < 1:
			return l, app.UsageOf(c, "--burst %s: write a whole number such as 10", strconv.Quote(refusal.Clip(c.String("burst"))))
		}
		l.rate.Burst = n
	}
	return l, nil
}

// numberOf reads a flag that is a whole number or none, which is 0. It returns nil if the flag is not set.
func numberOf(c *cli.Context, name, example string) (*int, error) {
	text := c.String(name)
	if !c.IsSet(name) {
		return nil, nil
	}
	if text == "none" {
		return new(int), nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, app.UsageOf(c, "--%s %s: write a whole number such as %s, or none", name, strconv.Quote(refusal.Clip(text)), example)
	}
	number := int(n)
	return &number, nil
}

// rateOf reads --rate: 10/1s, 10/s or none.
func rateOf(c *cli.Context) (*queue.Rate, error) {
	text := c.String("rate")
	if text == "none" || text == "0" {
		return &queue.Rate{}, nil
	}
	number, span, separated := strings.Cut(text, "/")
	n, err := strconv.ParseUint(number, 10, 31)
	if !separated || err != nil || n == 0 {
		return nil, app.UsageOf(c, "--rate %s: write how many tasks in which time, such as 10/1s, or none", strconv.Quote(refusal.Clip(text)))
	}
	if span != "" && !strings.ContainsAny(span[:1], "0123456789-+.") {
		span = "1" + span // 10/s
	}
	per, err := duration.Parse(span)
	if err != nil {
		return nil, app.UsageOf(c, "--rate %s: %v", strconv.Quote(refusal.Clip(text)), err)
	}
	if per < time.Millisecond {
		return nil, app.UsageOf(c, "--rate %s: the time must be 1ms or more", strconv.Quote(refusal.Clip(text)))
	}
	return &queue.Rate{N: int(n), Per: per}, nil
}

// setLimits sets the limits. If one is refused, those before it are set already, and the error names them.
func setLimits(c *cli.Context, q *queue.Queue, name string, l limits) error {
	var n queue.Controlled
	var err error
	applied := ""
	for _, step := range []struct {
		flag  string
		given bool
		set   func() (queue.Controlled, error)
	}{
		{"running", l.running != nil, func() (queue.Controlled, error) { return q.LimitRunning(c.Context, name, *l.running) }},
		{"length", l.length != nil, func() (queue.Controlled, error) { return q.LimitLength(c.Context, name, *l.length) }},
		{"rate", l.rate != nil, func() (queue.Controlled, error) { return q.LimitRate(c.Context, name, *l.rate) }},
	} {
		if !step.given {
			continue
		}
		if n, err = step.set(); err != nil && applied != "" {
			return fmt.Errorf("%w%s", err, applied)
		} else if err != nil {
			return err
		}
		applied += "; --" + step.flag + " is set"
	}
	if app.InJSON(c) {
		return printControlled(c, q, name, "", n)
	}
	list, err := readQueues(c, q)
	if err != nil {
		return err
	}
	did := "has no limits"
	if words := limitsText(list[name]); words != "-" {
		did = "limited to " + words
	}
	return printControlled(c, q, name, did, n)
}
