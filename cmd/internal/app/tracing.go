package app

import (
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/tracing"
	"github.com/curfew-dev/curfew/queue"
)

// traces is the name of the export of spans in the metadata of the program.
const traces = "traces"

// Trace sets the tracing of a namespace, and starts the export of spans if the environment asks for it. A command is a part of
// the trace that its environment names.
func Trace(c *cli.Context, config *queue.Config) error {
	export, started := c.App.Metadata[traces].(*tracing.Export)
	if !started {
		var err error
		export, err = tracing.Start(c.Context, slices.Contains(endless, c.Command.Name), LoggerAt(c, slog.LevelWarn))
		if err != nil {
			return Usage("%v", err)
		}
		if c.App.Metadata == nil {
			c.App.Metadata = map[string]any{}
		}
		c.App.Metadata[traces] = export
		c.Context = export.Context(c.Context)
	}
	config.Tracing = export.Tracing()
	return nil
}

// EndTraces sends the spans that are left. It takes a second at most.
func EndTraces(program *cli.App) {
	if export, started := program.Metadata[traces].(*tracing.Export); started {
		export.End()
	}
}
