package flows

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/tasks"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
)

func runsCommand() *cli.Command {
	return &cli.Command{
		Name:      "runs",
		Usage:     "list the runs of a definition, the newest first in each index",
		ArgsUsage: "DEFINITION",
		Description: `It lists tasks of the kind flow.DEFINITION, as ` + "`curfew ls --kind`" + ` does.

    curfew flow runs order --status FAILED --since 1h`,
		Flags: append(app.NamespaceFlags(), tasks.ListFlags("queue", "status", "timed-out", "since", "before", "error")...),
		Action: func(c *cli.Context) error {
			t := app.Takes(1, 1, "the name of one definition")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			f, err := tasks.FilterOf(c)
			if err != nil {
				return err
			}
			f.Kind = "flow." + words[0]
			return app.OnNamespaceAs(queue.AccessRead, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				definitions, err := flow.List(c.Context, q)
				if err != nil {
					return err
				}
				if err := known(definitions, words[0], ""); err != nil {
					return err
				}
				return tasks.PrintList(c, q, f)
			})(c)
		},
	}
}
