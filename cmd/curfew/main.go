// Command curfew drives a job queue in which nothing outlives its deadline.
package main

import (
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/fleet"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/flows"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/operator"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/programs"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/reference"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/tasks"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/cmd/internal/shell"
)

const name = "curfew"

func main() { program().Main() }

// program returns the program with all its commands, also those that are hidden.
func program() app.Program {
	commands := []*cli.Command{programs.Dev(), programs.Demo(), programs.Victim(), programs.Work(), programs.Guard(), programs.Reap(), programs.Serve(), tasks.Enqueue(), tasks.Get(),
		tasks.List(), tasks.Wait(), tasks.Cancel(), tasks.Retry(), tasks.Remove(), tasks.Resolve(), tasks.Signal(), tasks.Events(), tasks.Explain(), tasks.Export(),
		fleet.Top(), fleet.Deadlines(), fleet.Queues(), fleet.Kinds(), fleet.Workers(), fleet.Agents(), flows.Flow(), operator.Functions(), operator.Namespaces(), operator.Doctor(), operator.Fsck(),
		shell.Completion(name), shell.Version(name), shell.Help("curfew help functions load"), shell.Complete(), shell.Docs("The command", reference.Pages()...),
		app.Moved("bench", "the benchmarks are a program of their own, curfew-bench: it is beside curfew in a release archive, and `go run ./cmd/curfew-bench` runs it in a clone")}
	app.Share(commands)
	return app.Program{Name: name, Usage: "a job queue on Redis in which nothing outlives its deadline", Commands: commands}
}
