package operator

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// contradiction is how a finding of the audit is printed. Without --repair it has neither of the last two.
type contradiction struct {
	Partition int    `json:"partition"`
	Subject   string `json:"subject"`
	Rule      string `json:"rule"`
	Repair    string `json:"repair,omitempty"` // what repair does
	Cure      string `json:"cure,omitempty"`   // what an operator can do, if repair leaves it
}

func columns(more ...app.Column[contradiction]) app.List[contradiction] {
	return app.List[contradiction]{
		Columns: append([]app.Column[contradiction]{
			{Name: "partition", Right: true, Show: func(f contradiction) string { return strconv.Itoa(f.Partition) }},
			{Name: "subject", Show: func(f contradiction) string { return app.PlainWord(f.Subject) }},
			{Name: "rule", Show: func(f contradiction) string { return app.Plain(f.Rule) }},
		}, more...),
		ID: func(f contradiction) string { return app.PlainWord(f.Subject) },
	}
}

// Fsck returns the command that looks for contradictions in a namespace, and repairs them.
func Fsck() *cli.Command {
	return &cli.Command{
		Name:  "fsck",
		Usage: "find places where the records and indexes of a namespace contradict each other, and repair them",
		Description: `It reads the whole namespace, some 25,000 tasks a second, and changes nothing. Programs may run meanwhile: what looks
wrong is read again, and is a finding only if it stays wrong. No command keeps Redis busy for more than a few milliseconds.
The exit code is 1 if there is a finding.

    curfew fsck --namespace shop

With --repair it makes indexes and counters again from the records of tasks, which it takes as correct, and looks again.
--dry-run prints for each finding what that would do. No task ends: one that is overdue is ended by a reaper. What cannot be
derived from a record is left, with what you can do about it. If there are more than 1,000 findings, type their number, or give
--yes. The Redis user needs all rights (docs/how-to/security.md). The exit code is 1 if something is left.

    curfew fsck --repair --dry-run --namespace shop
    curfew fsck --repair --namespace shop

The subject is the id of a task, or a key without its root (docs/reference/keys.md).`,
		Flags: append(app.NamespaceFlags(),
			&cli.BoolFlag{Name: "repair", Usage: "make indexes and counters again from the records"},
			&cli.BoolFlag{Name: "dry-run", Usage: "with --repair: print what it would do, and change nothing"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "with --repair: do not ask"},
			app.ListFlag()),
		Action: func(c *cli.Context) error {
			for _, name := range []string{"dry-run", "yes"} {
				if c.IsSet(name) && !c.Bool("repair") {
					return app.UsageOf(c, "--%s needs --repair: without it nothing is changed", name)
				}
			}
			if c.Bool("yes") && c.Bool("dry-run") {
				return app.UsageOf(c, "--yes repairs and --dry-run does not: leave one of them out")
			}
			return app.OnNamespace(app.Nothing, fsck)(c)
		},
	}
}

func fsck(c *cli.Context, q *queue.Queue, _ []string) error {
	findings, err := inspect.Audit(c.Context, q)
	if err != nil {
		return err
	}
	if c.Bool("repair") && len(findings) > 0 {
		return repair(c, q, findings)
	}
	list := make([]contradiction, len(findings))
	for i, f := range findings {
		list[i] = contradiction{Partition: f.Partition, Subject: f.Subject, Rule: f.Rule}
	}
	if err := columns().Print(c, app.All(list)); err != nil {
		return err
	}
	return verdict(c, q, len(findings), "finding", "findings")
}

// verdict prints on stderr that the namespace is sound, or returns an error with the number of
// contradictions.
func verdict(c *cli.Context, q *queue.Queue, n int, one, several string) error {
	if n > 0 {
		return cli.Exit(fmt.Sprintf("%s in %s", app.Plural(int64(n), one, several), q.Namespace()), app.ExitFailed)
	}
	app.Note(c, "%s is sound", q.Namespace())
	return nil
}

// remedied returns a remedy as it is printed.
func remedied(r inspect.Remedy) contradiction {
	if len(r.Does) == 0 && r.Left == "" {
		r.Does = []string{"nothing more: another repair does it"}
	}
	return contradiction{Partition: r.Partition, Subject: r.Subject, Rule: r.Rule, Repair: strings.Join(r.Does, ", "), Cure: r.Left}
}

func printRemedies(c *cli.Context, list []contradiction) error {
	return columns(app.Column[contradiction]{Name: "repair", Show: func(f contradiction) string {
		words := []string{}
		if f.Repair != "" {
			words = append(words, app.Plain(f.Repair))
		}
		if f.Cure != "" {
			words = append(words, "left: "+app.Plain(f.Cure))
		}
		return strings.Join(words, "; ")
	}}).Print(c, app.All(list))
}
