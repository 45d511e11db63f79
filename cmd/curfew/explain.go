package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say why tasks and agents are where they are, and when that ends at the latest; docs/explain.md explains the words",
		ArgsUsage: "ID...",
		Flags: append(namespaceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON for each task"}),
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("explain needs the ids of one or more tasks: see `curfew explain --help`")
			}
			for _, arg := range c.Args().Slice() {
				if strings.HasPrefix(arg, "-") {
					return usage("explain takes flags before the ids, and got %q after an id", arg)
				}
				if _, err := queue.PartitionOf(arg); err != nil {
					return usage("%v", err)
				}
			}
			q, stop, err := openNamespace(c)
			if err != nil {
				return readError(err)
			}
			defer stop()
			return explain(c, q)
		},
	}
}

// explain prints a line for each task that exists, and then fails if some do not.
func explain(c *cli.Context, q *queue.Queue) error {
	var missing []string
	for _, id := range c.Args().Slice() {
		e, err := inspect.Explain(c.Context, q, id)
		if errors.Is(err, refusal.ErrNotFound) {
			missing = append(missing, id)
			continue
		}
		if err == nil && c.Bool("json") {
			err = printLine(c, e)
		} else if err == nil {
			_, err = fmt.Fprintln(c.App.Writer, e)
		}
		if err != nil {
			return readError(err)
		}
	}
	if len(missing) > 0 {
		return cli.Exit(fmt.Sprintf("there is no task %s: the id is wrong, the task is in another namespace, or its retention is over", strings.Join(missing, ", ")), exitNotFound)
	}
	return nil
}
