package operator

import (
	"cmp"
	"errors"
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
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const namespaceHelp = `A namespace is one deployment on a Redis: its tasks, queues, events and counters. Programs in Go create it when they
open it. Create it here if its number of partitions matters, or if its programs are in other languages or may not.

    curfew namespace create shop --partitions 16 --events all
    curfew namespace set shop --events terminal
    curfew namespace ls
    curfew namespace rm shop`

func Namespaces() *cli.Command {
	return app.Group("namespace", "create, change, list and remove namespaces", namespaceHelp,
		namespaceCreateCommand(), namespaceSetCommand(), namespaceListCommand(), namespaceRemoveCommand())
}

// oneName is for a command about one namespace.
var oneName = app.Takes(1, 1, "the name of one namespace")

func namespaceCreateCommand() *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "create a namespace with its settings",
		ArgsUsage: "NAME",
		Description: `    curfew namespace create shop --partitions 16 --events all

If the namespace exists, nothing is changed. That is an error if it has other settings than those that are given: the number
of partitions is fixed, and "curfew namespace set" changes the others. It also loads the functions for programs in other
languages into masters that have none or an older version, if the user may; otherwise it says on stderr what to run.

One partition is enough for some 10,000 tasks a second. A cluster needs three for each master or more (docs/how-to/cluster.md).`,
		Flags: app.ServerFlags(
			app.NumberFlag("partitions", 0, 1, queue.MaxPartitions, "how many partitions, 1 to 999 (default: 1)"),
			app.ChoiceFlag("events", "", "which events are written: all, terminal or none (default: terminal)", "all", "terminal", "none"),
			app.NumberFlag("event-mib", 0, 1, 65536, "about how many MiB of events each partition keeps, 1 to 65536 (default: 64)"),
			app.ChoiceFlag("figures", "", "whether ends of tasks are counted by kind: on or off (default: on)", "on", "off"),
			app.LimitFlag("default-timeout", "timeout of tasks that have none of their own and of their kind, such as 1h (default: none)"),
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			timeout, err := defaultTimeoutOf(c)
			if err != nil {
				return err
			}
			return app.OnServer(oneName, func(c *cli.Context, s *operate.Server, words []string) error {
				n, created, err := s.Create(c.Context, words[0], operate.Settings{Partitions: c.Int("partitions"), Events: c.String("events"),
					EventMiB: c.Int("event-mib"), Figures: c.String("figures"), DefaultTimeout: timeout})
				if err == nil {
					err = tellCreated(c, n, created)
				}
				if err == nil {
					offerFunctions(c, s, n)
				}
				return err
			})(c)
		},
	}
}

// defaultTimeoutOf reads --default-timeout: queue.None for none, 0 if it is not given.
func defaultTimeoutOf(c *cli.Context) (time.Duration, error) {
	d := app.DurationOf(c, "default-timeout")
	if c.IsSet("default-timeout") && d == 0 {
		return 0, app.UsageOf(c, "--default-timeout must not be 0: write a time of 1ms or more, such as 1h, or none")
	}
	return d, nil
}

// offerFunctions loads the functions for programs in other languages into masters that lack them. If
// that fails, it prints advice on stderr.
func offerFunctions(c *cli.Context, s *operate.Server, n operate.Namespace) {
	for _, did := range s.Load(c.Context, false) {
		switch {
		case did.Err != nil && did.Before == 0 && !haveFunctions(c, s, n):
			app.Note(c, "%s has no functions for programs in other languages: %v\nIf you have such programs, run `curfew functions load` as a user who may, or `curfew functions show | redis-cli -x FUNCTION LOAD REPLACE`", did.Node, did.Err)
		case did.Err == nil && did.Word == operate.LeftForeign:
			app.Note(c, "%s: %s; programs in other languages cannot use the namespace there", did.Node, loadText(did))
		}
	}
}

// haveFunctions reports whether programs in other languages can call each partition of a namespace. The embedded server has
// the functions, and cannot list them.
func haveFunctions(c *cli.Context, s *operate.Server, n operate.Namespace) bool {
	for p := range n.Partitions {
		if s.Client().FCall(c.Context, "curfew_about", []string{fmt.Sprintf("%s:{%d}", n.Name, p)}).Err() != nil {
			return false
		}
	}
	return true
}

func tellCreated(c *cli.Context, n operate.Namespace, created bool) error {
	if app.InJSON(c) {
		line := namespaceLine(n)
		line["created"] = created
		return app.PrintLine(c, line)
	}
	word := "exists"
	if created {
		word = "created"
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  %s: %s, events %s, %d MiB of events a partition, figures %s%s\n",
		n.Name, word, app.Plural(int64(n.Partitions), "partition", "partitions"), n.Events, n.EventMiB, n.Figures, defaultTimeoutText(n.Settings))
	return err
}

func namespaceSetCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change settings of a namespace while its programs run",
		ArgsUsage: "NAME",
		Description: `    curfew namespace set shop --events all

Programs need no restart: each call of any program reads the settings. A setting that is not given stays. The number of
partitions cannot be changed. The Redis user needs the rights of a producer (docs/how-to/security.md).`,
		Flags: app.ServerFlags(
			app.ChoiceFlag("events", "", "which events are written: all, terminal or none", "all", "terminal", "none"),
			app.NumberFlag("event-mib", 0, 1, 65536, "about how many MiB of events each partition keeps, 1 to 65536 (default: as it is)"),
			app.ChoiceFlag("figures", "", "whether ends of tasks are counted by kind: on or off", "on", "off"),
			app.LimitFlag("default-timeout", "timeout of tasks that have none of their own and of their kind, such as 1h; none removes it (default: as it is)"),
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			settings := queue.Settings{Events: queue.EventLevel(c.String("events")), EventMiB: c.Int("event-mib"), Figures: c.String("figures")}
			var err error
			if settings.DefaultTimeout, err = defaultTimeoutOf(c); err != nil {
				return err
			}
			if settings == (queue.Settings{}) && c.NArg() == 1 {
				return app.UsageOf(c, "namespace set needs --events, --event-mib, --figures or --default-timeout")
			}
			return app.OnServer(oneName, func(c *cli.Context, s *operate.Server, words []string) error {
				before, after, err := s.Set(c.Context, words[0], settings)
				if err != nil {
					return useError(c, s, words[0], err)
				}
				return tellSet(c, before, after)
			})(c)
		},
	}
}

func tellSet(c *cli.Context, before, after operate.Namespace) error {
	if app.InJSON(c) {
		line := namespaceLine(after)
		line["changed"] = before.Settings != after.Settings
		return app.PrintLine(c, line)
	}
	was := ""
	if before.Settings != after.Settings {
		was = fmt.Sprintf(" (before: events %s, %d MiB, figures %s%s)", before.Events, before.EventMiB, before.Figures, defaultTimeoutText(before.Settings))
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  events %s, %d MiB of events a partition, figures %s%s%s\n", after.Name, after.Events, after.EventMiB, after.Figures, defaultTimeoutText(after.Settings), was)
	return err
}

// defaultTimeoutText returns the end of a line about settings, "" if there is no default.
func defaultTimeoutText(s operate.Settings) string {
	if s.DefaultTimeout == 0 {
		return ""
	}
	return ", default timeout " + duration.Duration(s.DefaultTimeout).String()
}

// namespaceLine returns the JSON object of a namespace.
func namespaceLine(n operate.Namespace) map[string]any {
	line := map[string]any{"type": "namespace", "namespace": n.Name}
	if n.Err != nil {
		line["error"] = n.Err.Error()
		return line
	}
	line["version"] = any(n.Version)
	if version, err := strconv.Atoi(n.Version); err == nil {
		line["version"] = version
	}
	maps.Copy(line, map[string]any{"partitions": n.Partitions, "events": n.Events, "event_mib": n.EventMiB, "figures": n.Figures,
		"created_at": n.Created.UnixMilli(), "queue_count": n.Queues, "live": n.Live, "enqueued": n.Enqueued})
	if n.DefaultTimeout > 0 {
		line["default_timeout_ms"] = n.DefaultTimeout.Milliseconds()
	}
	if len(n.Missing) > 0 {
		line["missing_partitions"] = n.Missing
	}
	return line
}

func namespaceListCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the namespaces on a server or cluster",
		ArgsUsage: "[NAME...]",
		Description: `Redis has no list of namespaces, so this looks through the names of all keys, slowly enough to leave Redis half of its
time. With NAME it shows these namespaces alone, at once. "live" are tasks that have not ended, "enqueued" all that ever were.
It looks at the database of the URL.

    curfew namespace ls
    curfew namespace ls shop`,
		Flags: app.ServerFlags(
			app.NumberFlag("keys", 10_000_000, 0, math.MaxInt, "look at about this many keys of each master; 0: at all"),
			app.FormatFlag()),
		Action: app.OnServer(app.Takes(0, math.MaxInt, "names of namespaces"), func(c *cli.Context, s *operate.Server, words []string) error {
			if len(words) > 0 {
				return showNamespaces(c, s, words)
			}
			return listNamespaces(c, s)
		}),
	}
}

// showNamespaces prints those namespaces that exist, and then fails if some do not.
func showNamespaces(c *cli.Context, s *operate.Server, names []string) error {
	var namespaces []operate.Namespace
	var missing []string
	for _, name := range names {
		n, err := s.Namespace(c.Context, name)
		if errors.Is(err, refusal.ErrNoNamespace) {
			missing = append(missing, name)
		} else if err != nil {
			return err
		} else {
			namespaces = append(namespaces, n)
		}
	}
	if err := tellNamespaces(c, namespaces); err != nil {
		return err
	}
	if len(missing) > 0 {
		return noNamespace(c, s, missing...)
	}
	return nil
}

func listNamespaces(c *cli.Context, s *operate.Server) error {
	namespaces, looked, err := s.List(c.Context, int64(c.Int("keys")), app.Progress(c, "namespaces"))
	if err != nil && c.Context.Err() != nil {
		return app.Interrupted("the namespaces were not listed; look at fewer keys with --keys")
	}
	if err != nil {
		return err
	}
	if err := tellNamespaces(c, namespaces); err != nil {
		return err
	}
	if app.InJSON(c) {
		return app.PrintLine(c, map[string]any{"type": "end", "namespaces": len(namespaces), "masters": looked.Masters, "looked_at_keys": looked.Keys, "keys": looked.Of, "complete": looked.Whole})
	}
	text := fmt.Sprintf("%s; looked at all %s on %s", app.Plural(int64(len(namespaces)), "namespace", "namespaces"),
		app.Plural(looked.Of, "key", "keys"), app.Plural(int64(looked.Masters), "master", "masters"))
	if !looked.Whole {
		text = fmt.Sprintf("%s so far; looked at about %s of %s: --keys 0 looks at all", app.Plural(int64(len(namespaces)), "namespace", "namespaces"),
			app.Grouped(looked.Keys), app.Plural(looked.Of, "key", "keys"))
	}
	_, err = fmt.Fprintln(c.App.Writer, text)
	return err
}

func tellNamespaces(c *cli.Context, all []operate.Namespace) error {
	if !app.InJSON(c) && len(all) > 0 {
		if _, err := fmt.Fprintf(c.App.Writer, "%-24s %7s %10s %-8s %6s %10s %12s\n", "namespace", "version", "partitions", "events", "queues", "live", "enqueued"); err != nil {
			return err
		}
	}
	for _, n := range all {
		if err := tellNamespace(c, n); err != nil {
			return err
		}
	}
	return nil
}

func tellNamespace(c *cli.Context, n operate.Namespace) error {
	if app.InJSON(c) {
		return app.PrintLine(c, namespaceLine(n))
	}
	if n.Err != nil {
		_, err := fmt.Fprintf(c.App.Writer, "%-24s cannot be read: %v\n", n.Name, n.Err)
		return err
	}
	note := ""
	switch {
	case n.Version == operate.Removing:
		note = fmt.Sprintf("  is being removed: `curfew namespace rm %s` finishes that", n.Name)
	case !n.Known():
		note = "  this program does not know that version"
	case len(n.Missing) > 0:
		note = fmt.Sprintf("  %s missing: `curfew namespace create %s` creates the rest", app.Plural(int64(len(n.Missing)), "partition is", "partitions are"), n.Name)
	}
	version := n.Version
	if version == operate.Removing {
		version = "-"
	}
	_, err := fmt.Fprintf(c.App.Writer, "%-24s %7s %10d %-8s %6d %10s %12s%s\n", n.Name, version, n.Partitions, n.Events, n.Queues, app.Grouped(n.Live), app.Grouped(n.Enqueued), note)
	return err
}

func namespaceRemoveCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove a namespace: every key that Curfew has written for it, on all masters",
		ArgsUsage: "NAME",
		Description: `It says what there is, by kind of key (docs/reference/keys.md), and asks for the name once more. --yes does not ask, --dry-run
ends there. Stop all programs of the namespace first: it refuses while workers have leases, which end 15 seconds after a
worker was killed, or while a reaper has the turn.

From the first key on no program can use the namespace any more. If it is interrupted, run it again: it finishes. Other
namespaces are not touched, whatever their names begin with. Nothing can be undone: curfew export writes a copy.

    curfew namespace rm shop --dry-run
    curfew namespace rm shop`,
		Flags: app.ServerFlags(
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be removed, and remove nothing"},
			&cli.BoolFlag{Name: "force", Usage: "also if it is in use, or if this program does not know its version"},
			&cli.BoolFlag{Name: "unknown", Usage: "also remove keys below the roots that this version of Curfew does not write"},
			app.NumberFlag("rate", 50_000, 0, math.MaxInt, "how many keys to remove in a second at most; 0: no limit"),
			app.FormatFlag()),
		Action: func(c *cli.Context) error {
			if c.Bool("yes") && c.Bool("dry-run") {
				return app.Usage("--yes removes and --dry-run does not: leave one of them out")
			}
			return app.OnServer(oneName, func(c *cli.Context, s *operate.Server, words []string) error {
				return removeNamespace(c, s, words[0])
			})(c)
		},
	}
}

// removeNamespace counts the keys of a namespace, asks, and removes them.
func removeNamespace(c *cli.Context, s *operate.Server, name string) error {
	if !c.Bool("yes") {
		sure, err := confirm(c, s, name)
		if err != nil || !sure {
			return err
		}
	}
	say := app.Progress(c, "removing "+name)
	removed, remaining, err := s.Remove(c.Context, name, operate.Removal{Force: c.Bool("force"), Unknown: c.Bool("unknown"), Rate: c.Int("rate"),
		Done: func(l operate.Looked, _ operate.Keys) { say(l) }})
	n := removed.Sum() + removed.Unknown
	if err != nil && c.Context.Err() != nil {
		return app.Interrupted("%s of %s removed, and no program can use the rest; `curfew namespace rm %s` removes it", app.Plural(n, "key", "keys"), name, name)
	}
	if err != nil {
		if n > 0 {
			err = fmt.Errorf("%w; %s of %s removed, and no program can use the rest: `curfew namespace rm %s` removes it", err, app.Plural(n, "key", "keys"), name, name)
		}
		return useError(c, s, name, err)
	}
	if app.InJSON(c) {
		return tellKeys(c, "removed", name, removed, remaining.Unknown)
	}
	text := "removed " + app.Plural(n, "key", "keys") + " of " + name
	if remaining.Unknown > 0 {
		text += fmt.Sprintf("; %s left, which this version of Curfew does not write, such as %s: --unknown removes them too", app.Plural(remaining.Unknown, "key is", "keys are"), app.PlainWord(remaining.Example))
	}
	_, err = fmt.Fprintln(c.App.Writer, text)
	return err
}

func noNamespace(c *cli.Context, s *operate.Server, names ...string) error {
	return app.NoNamespace(c.Context, s.Client(), "`curfew namespace ls` lists them", names...)
}

// useError adds advice to an error about a namespace.
func useError(c *cli.Context, s *operate.Server, name string, err error) error {
	if errors.As(err, new(*operate.InUseError)) {
		return fmt.Errorf("%w: stop its programs and wait for that time, or give --force", err)
	}
	if errors.Is(err, refusal.ErrNoNamespace) {
		return noNamespace(c, s, name)
	}
	return err
}

// confirm prints the content of a namespace, and asks for its name. It returns false after a dry
// run.
func confirm(c *cli.Context, s *operate.Server, name string) (bool, error) {
	used := s.InUse(c.Context, name)
	if used != nil && (!errors.As(used, new(*operate.InUseError)) || !c.Bool("dry-run") && !c.Bool("force")) {
		return false, useError(c, s, name, used)
	}
	keys, err := s.CountKeys(c.Context, name, app.Progress(c, "counting "+name))
	if err != nil {
		return false, err
	}
	if keys.Sum()+keys.Unknown == 0 {
		return false, useError(c, s, name, refusal.ErrNoNamespace)
	}
	if err := tellKeys(c, "found", name, keys, keys.Unknown); err != nil {
		return false, err
	}
	warning := ""
	if used != nil {
		warning = fmt.Sprintf("%v: removing it needs --force\n", used)
	}
	if c.Bool("dry-run") {
		if warning != "" {
			app.Note(c, "%s", strings.TrimSuffix(warning, "\n"))
		}
		return false, nil
	}
	err = app.Confirm(c, app.Question{Text: warning + "This removes the namespace for good. Type its name to go on: ", Wants: []string{name},
		What: "the name of the namespace", Nothing: "nothing was removed"})
	return err == nil, err
}

// tellKeys prints the number of keys by kind.
func tellKeys(c *cli.Context, word, name string, keys operate.Keys, unknown int64) error {
	if app.InJSON(c) {
		return app.PrintLine(c, map[string]any{"type": word, "namespace": name, "keys": keys.Sum(), "key_counts": keys.Kinds, "unknown": unknown})
	}
	kinds := slices.SortedFunc(maps.Keys(keys.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(keys.Kinds[b], keys.Kinds[a]), cmp.Compare(a, b))
	})
	for _, kind := range kinds {
		if _, err := fmt.Fprintf(c.App.Writer, "  %-10s %12s\n", kind, app.Grouped(keys.Kinds[kind])); err != nil {
			return err
		}
	}
	if unknown > 0 {
		note := "are left: --unknown removes them too"
		if c.Bool("unknown") {
			note = "are removed too"
		}
		if _, err := fmt.Fprintf(c.App.Writer, "  %-10s %12s  such as %s; this version of Curfew does not write these keys, and they %s\n", "unknown", app.Grouped(unknown), app.PlainWord(keys.Example), note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s has %s\n", name, app.Plural(keys.Sum()+unknown, "key", "keys"))
	return err
}
