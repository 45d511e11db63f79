package main

import (
	"encoding/json"
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
		Usage:     "why tasks and agents are where they are, and by when at the latest that ends; docs/explain.md says what each word means",
		ArgsUsage: "ID...",
		Flags: append(namespaceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "a line of JSON a task"}),
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("explain needs the id of a task, or several: see `curfew explain --help`")
			}
			for _, arg := range c.Args().Slice() {
				if strings.HasPrefix(arg, "-") {
					return usage("explain takes flags before the ids, and got %q behind one", arg)
				}
				if _, err := queue.PartitionOf(arg); err != nil {
					return usage("%v", err)
				}
			}
			q, stop, err := openNamespace(c)
			if err != nil {
				return err
			}
			defer stop()
			return explain(c, q)
		},
	}
}

// explain tells of all ids that there are, and then of those that there are not.
func explain(c *cli.Context, q *queue.Queue) error {
	encoder := json.NewEncoder(c.App.Writer)
	encoder.SetEscapeHTML(false)
	var missing []string
	for _, id := range c.Args().Slice() {
		e, err := inspect.Explain(c.Context, q, id)
		if errors.Is(err, refusal.ErrNotFound) {
			missing = append(missing, id)
			continue
		}
		if err == nil && c.Bool("json") {
			err = encoder.Encode(e)
		} else if err == nil {
			_, err = fmt.Fprintln(c.App.Writer, e)
		}
		if err != nil {
			return readError(err)
		}
	}
	if len(missing) > 0 {
		return cli.Exit(fmt.Sprintf("there is no task %s: the id is wrong, it is in another namespace, or its record went with its retention", strings.Join(missing, ", ")), exitNotFound)
	}
	return nil
}
