// Command curfew-bench measures Curfew: speed, lateness and memory, alone or compared with another library.
package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/cmd/internal/shell"
)

const name = "curfew-bench"

func main() { program().Main() }

// program returns the program with all its commands, also those that are hidden.
func program() app.Program {
	commands := measurements()
	for _, command := range commands {
		measure := command.Action
		command.Action = func(c *cli.Context) error { return benchError(c.Context, measure(c)) }
		command.Description = strings.TrimLeft(command.Description+"\n\n    curfew-bench "+command.Name+invocations[command.Name], "\n")
	}
	return app.Program{
		Name:  name,
		Usage: "measure speed, lateness and memory of Curfew, on a redis-server that it starts itself",
		Description: `curfew-bench needs redis-server 7.0 or newer on the PATH. Measure on a machine that does nothing else.

    curfew-bench throughput`,
		Commands: append(commands, shell.Completion(name), shell.Version(name), shell.Help("curfew-bench help throughput"), shell.Complete(), shell.Docs("The benchmarks")),
	}
}
