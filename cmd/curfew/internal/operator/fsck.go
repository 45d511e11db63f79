package operator

import (
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// contradiction is how a finding of the audit is printed.
type contradiction struct {
	Partition int    `json:"partition"`
	Subject   string `json:"subject"`
	Rule      string `json:"rule"`
}

var contradictions = app.List[contradiction]{
	Columns: []app.Column[contradiction]{
		{Name: "partition", Right: true, Show: func(f contradiction) string { return strconv.Itoa(f.Partition) }},
		{Name: "subject", Show: func(f contradiction) string { return app.PlainWord(f.Subject) }},
		{Name: "rule", Show: func(f contradiction) string { return app.Plain(f.Rule) }},
	},
	ID: func(f contradiction) string { return app.PlainWord(f.Subject) },
}

// Fsck returns the command that looks for contradictions in a namespace.
func Fsck() *cli.Command {
	return &cli.Command{
		Name:  "fsck",
		Usage: "find places where the records and indexes of a namespace contradict each other",
		Description: `It reads the whole namespace, some 25,000 tasks a second, and changes nothing. Programs may run meanwhile: what looks
wrong is read again, and is a finding only if it stays wrong. No command keeps Redis busy for more than a few milliseconds.
The exit code is 1 if there is a finding.

    curfew fsck --namespace shop

The subject is the id of a task, or a key without its root (docs/reference/keys.md).`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: app.OnNamespace(app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			found, err := inspect.Audit(c.Context, q)
			if err != nil {
				return err
			}
			list := make([]contradiction, len(found))
			for i, f := range found {
				list[i] = contradiction(f)
			}
			if err := contradictions.Print(c, app.All(list)); err != nil {
				return err
			}
			if len(found) > 0 {
				return cli.Exit(fmt.Sprintf("%s in %s", app.Plural(int64(len(found)), "finding", "findings"), q.Namespace()), app.ExitFailed)
			}
			fmt.Fprintf(c.App.ErrWriter, "%s is sound\n", q.Namespace())
			return nil
		}),
	}
}
