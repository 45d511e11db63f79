package tasks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// hideFlag returns the flag that hides texts of users.
func hideFlag() cli.Flag {
	return &cli.BoolFlag{Name: "hide-payloads", Usage: "leave out what users have put into tasks: payloads, results, headers, progress, texts of errors and what agents remember"}
}

func Get() *cli.Command {
	f := app.ChoiceFlag("output", "text", "text, or json: one object", "text", "json", "jsonl")
	f.Aliases = []string{"o"}
	return &cli.Command{
		Name:      "get",
		Usage:     "print one task whole: record, payload, result or error, children, what an agent waits for and remembers",
		ArgsUsage: "ID",
		Description: `docs/reference/keys.md explains the names.

    curfew get 0-1MCC5RM000000001
    curfew get 0-1MCC5RM000000001 -o json`,
		Flags: append(app.NamespaceFlags(),
			&cli.BoolFlag{Name: "full", Usage: "print long payloads, results and entries whole"}, hideFlag(), f),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(1, 1, "the id of one task"), func(c *cli.Context, q *queue.Queue, words []string) error {
			w, err := inspect.Read(c.Context, q, words[0])
			if errors.Is(err, refusal.ErrNotFound) {
				return cli.Exit(noTask(err), app.ExitNotFound)
			}
			if err != nil {
				return err
			}
			if c.Bool("hide-payloads") {
				inspect.Hide(w)
			}
			if app.InJSON(c) {
				return app.PrintLine(c, w)
			}
			_, err = fmt.Fprint(c.App.Writer, describe(w, c.Bool("full")))
			return err
		}),
	}
}

// elsewhere are fields that have a place of their own in the text.
var elsewhere = []string{"kind", "queue", "status", "result", "error", "headers"}

// internalFields are not shown to people: ids of calls, by which Curfew recognizes repeats, and its
// own marks.
var internalFields = []string{"call", "cancelled_by", "counted_as", "enqueued_by", "journal", "late_by", "lost_by", "requeued_by", "suspended_by", "waiting", "watched", "woken"}

// describe returns a task as text.
func describe(w *inspect.Whole, full bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  in queue %s  %s\n", w.ID, app.PlainWord(w.Kind), app.PlainWord(w.Queue), w.Status)
	if w.Explanation != nil {
		fmt.Fprintf(&b, "%s\n", plainText(w.Explanation.String()))
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(w.Fields)) {
		if !slices.Contains(elsewhere, name) && (full || !slices.Contains(internalFields, name)) {
			fmt.Fprintf(&b, "%-20s %s\n", app.PlainWord(name), value(name, w.Fields[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		fmt.Fprintf(&b, "%-20s %s: %s\n", "header", app.PlainWord(name), app.PlainWord(w.Headers[name]))
	}
	body := func(name string, text []byte) {
		if text != nil {
			fmt.Fprintf(&b, "\n%s (%s)\n%s\n", name, app.Plural(int64(len(text)), "byte", "bytes"), shown(text, full))
		}
	}
	body("payload", w.Payload)
	body("result", w.Result)
	if w.Error != "" {
		body("error", []byte(w.TimeoutType.ErrorText(w.Error)))
	}
	describeAgent(&b, w, full)
	return b.String()
}

// describeAgent adds the wait of an agent, its children, and its journal.
func describeAgent(b *strings.Builder, w *inspect.Whole, full bool) {
	if e := w.Explanation; e != nil && e.Wait != nil {
		fmt.Fprintf(b, "\nwaits for (%s, %s, %d have ended)\n", e.Wait.Mode, app.Plural(int64(e.Wait.Members), "task", "tasks"), e.Wait.Settled)
		records := map[string]*queue.Record{}
		for _, r := range w.Members {
			records[r.ID] = r
		}
		lines := make([]string, len(e.Wait.Tasks))
		for i, id := range e.Wait.Tasks {
			if lines[i] = id; records[id] != nil {
				lines[i] = related(records[id])
			}
		}
		for _, line := range few(lines, full) {
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
	if len(w.Children) > 0 {
		fmt.Fprintf(b, "\nchildren (%s made)\n", w.Fields["children"])
		lines := make([]string, len(w.Children))
		for i, child := range w.Children {
			lines[i] = related(child)
		}
		for _, line := range few(lines, full) {
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
	if m := w.Memory; m != nil {
		fmt.Fprintf(b, "\nremembers (%s since its checkpoint)\n", app.Plural(int64(len(m.Journal)), "entry", "entries"))
		if m.State != nil {
			fmt.Fprintf(b, "  checkpoint %d: %s\n", m.Entries, cell(m.State))
		}
		var lines []string
		for _, n := range slices.Sorted(maps.Keys(m.Journal)) {
			lines = append(lines, fmt.Sprintf("%d: %s", n, journalText(m.Journal[n], full)))
		}
		for _, line := range few(lines, full) {
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
}

// related returns a line about a child or a member of a wait.
func related(r *queue.Record) string {
	line := fmt.Sprintf("%s  %s  %s", r.ID, app.PlainWord(r.Kind), r.Status)
	switch {
	case r.TimedOut:
		line += " (timeout) at " + instant(r.CompletedAt)
	case r.Status.Ended():
		line += " at " + instant(r.CompletedAt)
	case !r.Until.IsZero():
		line += ", ends by " + instant(r.Until)
	}
	return line
}

// journalText returns an entry of an agent's journal for people.
func journalText(entry string, full bool) string {
	short := func(text string) string {
		if full {
			return plainText(strings.ReplaceAll(text, "\n", " "))
		}
		return cell([]byte(text))
	}
	if o, ok := queue.ReadWaitOutcome(entry); ok {
		return fmt.Sprintf("waited for %s: %s at %s, %d of %s had ended", short(o.Label), o.Reason, instant(o.At), len(o.Settled), app.Plural(int64(len(o.Members)), "task", "tasks"))
	}
	line, rest, _ := strings.Cut(entry, "\n")
	switch kind, name, _ := strings.Cut(line, " "); kind {
	case "step":
		return fmt.Sprintf("step %s: %s", app.PlainWord(name), short(rest))
	case "failed":
		return fmt.Sprintf("step %s failed: %s", app.PlainWord(name), short(rest))
	case "now":
		return "the time: " + value("now_at", name)
	case "rand":
		return "the seed of random numbers"
	case "cancel":
		return "cancelled tasks: " + short(name)
	}
	return short(entry)
}

// few returns the first lines of a list, and how many more there are.
func few(lines []string, full bool) []string {
	const limit = 20
	if full || len(lines) <= limit {
		return lines
	}
	return append(lines[:limit:limit], fmt.Sprintf("… and %d more: --full prints all", len(lines)-limit))
}

// value returns a stored field for people: an instant as a date, and a span with units.
func value(name, text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && (strings.HasSuffix(name, "_at") || name == "until"):
		return instant(time.UnixMilli(n))
	case err == nil && strings.HasSuffix(name, "_ms"):
		return duration.Duration(time.Duration(n) * time.Millisecond).String()
	}
	return app.PlainWord(text)
}
