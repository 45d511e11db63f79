package flows

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the JSON Schema of definitions, for an editor",
		Description: `It describes both spellings, in JSON and YAML, and needs no connection. A file that it refuses is refused by check too. check also
finds what a schema cannot say, such as a node that does not exist.

    curfew flow schema > flow.schema.json

An editor uses it for a YAML file that begins with # yaml-language-server: $schema=flow.schema.json`,
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			_, err := c.App.Writer.Write(flow.Schema())
			return app.Failure(c, err)
		},
	}
}
