package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// setting is a default of a kind that `kind set` sets by a flag.
type setting struct {
	flag cli.Flag
	set  func(c *cli.Context, d *queue.Defaults)
}

func (s setting) isSet(c *cli.Context) bool { return c.IsSet(s.flag.Names()[0]) }

// settings are the defaults of a kind.
func settings() (all []setting) {
	for i := range field.All {
		f := &field.All[i]
		if f.By != field.Kind {
			continue
		}
		name := f.FlagName()
		all = append(all, setting{app.FieldFlag(f, name), func(c *cli.Context, d *queue.Defaults) { app.SetField(c, f, name, d) }})
	}
	return append(all, setting{app.ChoiceFlag("preset", "", "set the attempt timeout that is recommended for such tasks", presetNames()...), setPreset})
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
stays as it is, and 0 or an empty text removes a default, but with --backoff-delay 0 tasks are retried at once. --timeout none keeps the
default timeout of the namespace from the kind. --clear removes all defaults before the others are set. A worker that has defaults of its own sets them when it starts.

    curfew kind set render --timeout 30s --retries 3 --backoff exponential --backoff-delay 1s
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
	if c.IsSet("backoff-delay") && app.DurationOf(c, "backoff-delay") <= 0 {
		d.Backoff = queue.Backoff{} // a back-off of 0 does not grow
	}
	for _, s := range all {
		if s.isSet(c) {
			s.set(c, &d)
		}
	}
	if c.String("retry-expression") != "" && !c.IsSet("on-timeout") {
		d.OnTimeout = "" // the expression decides about timeouts too
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

// defaultsOf decodes the stored defaults of a kind.
func defaultsOf(stored map[string]string) (d queue.Defaults) {
	if field.Defaults(&d, stored); d.Retry != "" {
		d.OnTimeout = "" // the result of the expression for a timeout
	}
	return d
}
