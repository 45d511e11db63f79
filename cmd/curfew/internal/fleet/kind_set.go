package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// setting is a default of a kind that `kind set` sets by a flag.
type setting struct {
	flag cli.Flag
	set  func(c *cli.Context, d *queue.Defaults)
}

func (s setting) isSet(c *cli.Context) bool { return c.IsSet(s.flag.Names()[0]) }

func settings() []setting {
	return []setting{
		{app.DurationFlag("timeout", 0, "from the creation of a task to its deadline"), func(c *cli.Context, d *queue.Defaults) { d.Timeout = app.DurationOf(c, "timeout") }},
		{app.DurationFlag("queue-timeout", 0, "how long a task may be in line, each time"), func(c *cli.Context, d *queue.Defaults) { d.QueueTimeout = app.DurationOf(c, "queue-timeout") }},
		{app.DurationFlag("attempt-timeout", 0, "how long an attempt may take"), func(c *cli.Context, d *queue.Defaults) { d.AttemptTimeout = app.DurationOf(c, "attempt-timeout") }},
		{app.ChoiceFlag("preset", "", "set the attempt timeout that is recommended for such tasks", presetNames()...), setPreset},
		{app.ChoiceFlag("on-timeout", "", "what happens when an attempt takes too long: fail or retry (default: fail)", "fail", "retry"), func(c *cli.Context, d *queue.Defaults) { d.OnTimeout = queue.OnTimeout(c.String("on-timeout")) }},
		{app.ChoiceFlag("on-deadline", "", "how a task with children ends at its deadline: cancel_all or fail (default: cancel_all)", "cancel_all", "fail"), func(c *cli.Context, d *queue.Defaults) { d.OnDeadline = queue.OnDeadline(c.String("on-deadline")) }},
		{app.NumberFlag("warn-percent", 0, 0, 99, "after how much of its time an event warns of its deadline, 1 to 99"), func(c *cli.Context, d *queue.Defaults) { d.WarnAt = float64(c.Int("warn-percent")) / 100 }},
		{app.DurationFlag("cancel-grace", 0, "how long a handler may go on after its task is cancelled"), func(c *cli.Context, d *queue.Defaults) { d.CancelGrace = app.DurationOf(c, "cancel-grace") }},
		{app.DurationFlag("timeout-grace", 0, "how long before its time is up the context of a handler ends"), func(c *cli.Context, d *queue.Defaults) { d.TimeoutGrace = app.DurationOf(c, "timeout-grace") }},
		{app.NumberFlag("retries", 0, 0, 1<<30, "how many failed attempts are repeated"), func(c *cli.Context, d *queue.Defaults) { d.MaxRetries = c.Int("retries") }},
		{app.DurationFlag("backoff", 0, "time from a failed attempt to the next one"), func(c *cli.Context, d *queue.Defaults) { setBackoff(c, d) }},
		{app.DurationFlag("backoff-max", 0, "the longest back-off, with --growth exponential"), func(c *cli.Context, d *queue.Defaults) { d.Backoff.Max = app.DurationOf(c, "backoff-max") }},
		{app.ChoiceFlag("growth", "", "whether each retry doubles the back-off: constant or exponential (default: constant)", "constant", "exponential"), func(c *cli.Context, d *queue.Defaults) { d.Backoff.Exponential = c.String("growth") == "exponential" }},
		{app.NumberFlag("jitter", 0, 0, 100, "how many percent may be taken off a back-off at random"), func(c *cli.Context, d *queue.Defaults) { d.Backoff.Jitter = float64(c.Int("jitter")) / 100 }},
		{&cli.StringFlag{Name: "retry-expression", Usage: "the expression that decides whether a failed attempt is repeated"}, func(c *cli.Context, d *queue.Defaults) { setExpression(c, d) }},
		{app.DurationFlag("retention", 0, "how long the record is kept after the end"), func(c *cli.Context, d *queue.Defaults) { d.Retention = app.DurationOf(c, "retention") }},
		hookSetting("success", "completes", func(h *queue.Hooks) *queue.Hook { return &h.OnSuccess }),
		hookSetting("failure", "fails", func(h *queue.Hooks) *queue.Hook { return &h.OnFailure }),
		hookSetting("timeout", "times out (without it, as --hook-failure says)", func(h *queue.Hooks) *queue.Hook { return &h.OnTimeout }),
		hookSetting("cancel", "is cancelled", func(h *queue.Hooks) *queue.Hook { return &h.OnCancel }),
	}
}

// hookSetting is the task that follows an event. A kind can contain a colon, so a space is before its queue, as in the stored field.
func hookSetting(event, when string, of func(*queue.Hooks) *queue.Hook) setting {
	name := "hook-" + event
	return setting{&cli.StringFlag{Name: name, Usage: `the kind of the task that is enqueued when a task ` + when + `; "KIND QUEUE" if its queue is not default`},
		func(c *cli.Context, d *queue.Defaults) {
			h := of(&d.Hooks)
			h.Kind, h.Queue, _ = strings.Cut(c.String(name), " ")
		}}
}

func presetNames() (all []string) {
	for _, p := range flow.Presets() {
		all = append(all, p.Name)
	}
	return all
}

// setPreset sets the attempt timeout that a preset recommends.
func setPreset(c *cli.Context, d *queue.Defaults) {
	for _, p := range flow.Presets() {
		if p.Name == c.String("preset") {
			d.AttemptTimeout = p.Most
		}
	}
}

// setBackoff sets the delay; without it there is no back-off at all.
func setBackoff(c *cli.Context, d *queue.Defaults) {
	if d.Backoff.Delay = app.DurationOf(c, "backoff"); d.Backoff.Delay == 0 {
		d.Backoff = queue.Backoff{}
	}
}

// setExpression sets the expression, which also decides about timeouts.
func setExpression(c *cli.Context, d *queue.Defaults) {
	if d.Retry = c.String("retry-expression"); d.Retry != "" && !c.IsSet("on-timeout") {
		d.OnTimeout = ""
	}
}

func kindSetCommand() *cli.Command {
	all, flags := settings(), app.NamespaceFlags()
	for _, s := range all {
		flags = append(flags, s.flag)
	}
	return &cli.Command{
		Name:      "set",
		Usage:     "set defaults of a kind: limits, retries, retention and hooks",
		ArgsUsage: "KIND",
		Description: `The defaults apply to tasks that are enqueued from now on, and only to what their producer leaves out. What is not named
stays as it is, and 0 or an empty text removes a default; --clear removes all before the others are set. A worker that has defaults of its own
sets them when it starts.

    curfew kind set render --timeout 30s --retries 3 --backoff 1s --growth exponential
    curfew kind set ask-model --preset llm_call
    curfew kind set render --clear

A preset is one of the recommended times of docs/reference/flow.md. It sets the attempt timeout, which is printed with all defaults.`,
		Flags: append(flags, &cli.BoolFlag{Name: "clear", Usage: "remove all defaults of the kind first"}, app.FormatFlag()),
		Action: func(c *cli.Context) error {
			if !c.Bool("clear") && !slices.ContainsFunc(all, func(s setting) bool { return s.isSet(c) }) {
				return app.UsageOf(c, "kind set needs a default to set, such as --timeout 30s, or --clear")
			}
			if c.String("preset") != "" && c.IsSet("attempt-timeout") {
				return app.UsageOf(c, "--preset and --attempt-timeout both set the attempt timeout: give one of them")
			}
			return app.OnNamespace(app.Takes(1, 1, "the name of one kind"), func(c *cli.Context, q *queue.Queue, words []string) error { return setKind(c, q, words[0], all) })(c)
		},
	}
}

func setKind(c *cli.Context, q *queue.Queue, kind string, all []setting) error {
	kinds, err := q.Kinds(c.Context)
	if err != nil {
		return err
	}
	var d queue.Defaults
	if !c.Bool("clear") {
		d = defaultsOf(kinds[kind])
	}
	for _, s := range all {
		if s.isSet(c) {
			s.set(c, &d)
		}
	}
	if err := q.DefineKind(c.Context, kind, d); err != nil {
		return err
	}
	if kinds, err = q.Kinds(c.Context); err != nil {
		return err
	}
	now := lines.Stored(kinds[kind])
	if app.InJSON(c) {
		return app.PrintLine(c, struct {
			Kind     string       `json:"kind"`
			Defaults lines.Stored `json:"fields"`
		}{kind, now})
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s  defaults: %s\n", kind, cmp.Or(defaultsText(now), "none"))
	return err
}

// defaultsOf reads what DefineKind has stored.
func defaultsOf(fields map[string]string) queue.Defaults {
	number := func(name string) int {
		n, _ := strconv.Atoi(fields[name])
		return n
	}
	span := func(name string) time.Duration {
		if fields[name] == "none" {
			return queue.None
		}
		return time.Duration(number(name)) * time.Millisecond
	}
	d := queue.Defaults{Timeout: span("timeout_ms"), QueueTimeout: span("queue_timeout_ms"), AttemptTimeout: span("attempt_timeout_ms"),
		OnTimeout: queue.OnTimeout(fields["on_timeout"]), OnDeadline: queue.OnDeadline(fields["on_deadline"]),
		WarnAt: float64(number("warn_percent")) / 100, CancelGrace: span("cancel_grace_ms"), TimeoutGrace: span("timeout_grace_ms"),
		MaxRetries: number("max_retries"), Retry: fields["retry_expression"], Retention: span("retention_ms"),
		Backoff: queue.Backoff{Delay: span("backoff_ms"), Exponential: fields["backoff"] == "exponential", Max: span("backoff_max_ms"), Jitter: float64(number("jitter")) / 100},
		Hooks:   queue.ReadHooks(fields)}
	if d.Retry != "" {
		d.OnTimeout = "" // it is what the expression says of a timeout
	}
	return d
}
