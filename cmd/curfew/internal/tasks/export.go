package tasks

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

func Export() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "print the whole state of a namespace, one line of JSON for each object; docs/reference/events.md explains the lines",
		Description: `    curfew export > shop.jsonl
    curfew export --hide-payloads -o shop.jsonl

The last line has the type "end". An export without it is not complete.`,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this file; a new file is readable by its owner only (default: stdout)"},
			hideFlag()),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			q, stop, err := app.OpenAs(c, queue.AccessRead)
			if err == nil {
				defer stop()
				err = writeExport(c, q)
			}
			if err != nil && c.Context.Err() != nil {
				err = app.Interrupted("the export is not complete, and lacks its last line")
			}
			return app.Failure(c, err)
		},
	}
}

func writeExport(c *cli.Context, q *queue.Queue) error {
	var change []func(*inspect.ExportLine)
	if c.Bool("hide-payloads") {
		change = append(change, inspect.Hide[*inspect.ExportLine])
	}
	path := c.String("output")
	if path == "" || path == "-" {
		return inspect.ExportTo(c.Context, q, c.App.Writer, change...)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // the file has payloads
	if err != nil {
		return app.Usage("--output: %v", err)
	}
	err = inspect.ExportTo(c.Context, q, file, change...)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
