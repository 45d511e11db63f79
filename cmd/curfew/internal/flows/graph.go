package flows

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
)

func graphCommand() *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "print a file, a definition or a run as a graph for Mermaid",
		ArgsUsage: "NAME",
		Description: `NAME is a file if it has a dot or a slash, and - is stdin: these need no connection. An id such as 0-1MCC5RM000000001 is a run, whose
graph has the phase of each node and the time that is left. Other names are those of definitions.

    curfew flow graph order.yaml
    curfew flow graph 0-1MCC5RM000000001 > run.mmd`,
		Flags: append(app.NamespaceFlags(), versionFlag("of a definition, this version (default: the newest)")),
		Action: func(c *cli.Context) error {
			t := app.Takes(1, 1, "a file, a definition or a run")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			if err := checkVersion(c); err != nil {
				return err
			}
			word := words[0]
			_, notID := queue.PartitionOf(word)
			file := word == "-" || strings.ContainsAny(word, "./")
			if c.IsSet("version") && (file || notID == nil) {
				return app.UsageOf(c, "--version is for a definition: leave it out")
			}
			if file {
				return app.Failure(c, graphFile(c, word))
			}
			return app.OnNamespaceAs(queue.AccessRead, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				if notID != nil {
					text, err := definition(c, q, word)
					if err != nil {
						return err
					}
					return graphText(c, text)
				}
				r, err := readRun(c, q, word)
				if err != nil {
					return err
				}
				return app.WriteText(c, r.Mermaid())
			})(c)
		},
	}
}

func graphFile(c *cli.Context, file string) error {
	text, err := readFile(c, file)
	if err != nil {
		return err
	}
	err = graphText(c, text)
	var faults flow.Faults
	if errors.As(err, &faults) {
		line := faultLines(file, faults[:1])
		return app.Usage("the definition is wrong, so it has no graph: %s", line[:len(line)-1])
	}
	return err
}

func graphText(c *cli.Context, text []byte) error {
	graph, err := flow.Mermaid(text)
	if err != nil {
		return err
	}
	return app.WriteText(c, graph)
}
