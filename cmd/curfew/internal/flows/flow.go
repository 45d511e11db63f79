package flows

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const flowHelp = `A definition says which tasks run, in which order, how long each of them can take, and what happens then. A run follows a
version of a definition. docs/how-to/flows.md has a whole example.

    curfew flow check order.yaml
    curfew flow put order.yaml
    curfew flow run order --input '{"pages":3}' --wait`

func Flow() *cli.Command {
	return app.Group("flow", "check and store definitions of flows, start runs, and look at them", flowHelp,
		checkCommand(), schemaCommand(), putCommand(), listCommand(), showCommand(), runCommand(), runsCommand(), getCommand(), graphCommand(), resumeCommand(), cancelCommand())
}

// failure gives the errors of package flow their exit codes.
func failure(err error) error {
	switch {
	case errors.Is(err, refusal.ErrNotFound):
		return cli.Exit(err.Error(), app.ExitNotFound)
	case errors.Is(err, refusal.ErrConflict), errors.Is(err, refusal.ErrQueueFull):
		return cli.Exit(err.Error(), app.ExitRefused)
	}
	return err
}

// isRun reports whether tasks of a kind are whole runs. The kind of a part of a run has a slash.
func isRun(kind string) bool { return strings.HasPrefix(kind, "flow.") && !strings.Contains(kind, "/") }

// aRun is for a command about one run.
var aRun = app.Takes(1, 1, "the id of one run")

// readRun reads a run and its parts. words has its id.
func readRun(c *cli.Context, q *queue.Queue, id string) (*flow.Run, error) {
	if _, err := queue.PartitionOf(id); err != nil {
		return nil, app.Usage("%v", err)
	}
	r, err := flow.Read(c.Context, q, id, true)
	if errors.Is(err, refusal.ErrNotFound) {
		return nil, cli.Exit(err.Error()+": "+app.WhyNoTask, app.ExitNotFound)
	}
	return r, err
}
