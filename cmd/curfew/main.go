// Command curfew drives a job queue in which nothing outlives its deadline.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/benches"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/fleet"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/flows"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/operator"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/programs"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/shell"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/tasks"
)

func main() {
	ctx := untilSignalled()
	// Without this, a write to a pipe that nobody reads kills the process. Now it returns an error, which commands know.
	// signal.Ignore would do the same to the commands that curfew work starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	redis.SetLogger(quiet{}) // errors are returned, and printed once
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// untilSignalled returns a context that ends with the first signal. A later signal ends the process at once, unless the command that
// runs handles signals.
func untilSignalled() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(app.Doubled, stop) })
	return ctx
}

// quiet is a logger that stops the Redis client from writing to stderr.
type quiet struct{}

// Printf drops the line.
func (quiet) Printf(context.Context, string, ...any) {}

// allCommands returns the commands, also those that are hidden.
func allCommands() []*cli.Command {
	commands := []*cli.Command{programs.Dev(), programs.Demo(), programs.Victim(), programs.Work(), programs.Guard(), programs.Reap(), programs.Serve(), benches.Bench(), tasks.Enqueue(), tasks.Get(),
		tasks.List(), tasks.Wait(), tasks.Cancel(), tasks.Retry(), tasks.Remove(), tasks.Resolve(), tasks.Signal(), tasks.Events(), tasks.Explain(), tasks.Export(),
		fleet.Top(), fleet.Deadlines(), fleet.Queues(), fleet.Kinds(), fleet.Workers(), fleet.Agents(), flows.Flow(), operator.Functions(), operator.Namespaces(), operator.Doctor(), operator.Fsck(),
		shell.Completion(), shell.Version(), shell.Help(), shell.Complete(), shell.Docs()}
	app.Share(commands)
	return commands
}

// run runs the command with these arguments and outputs, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, args, os.Stdin, stdout, stderr)
}

// runWith is run with another input.
func runWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	commands := allCommands()
	app.ExplainWrongFlags(commands)
	program := &cli.App{
		Reader:                    stdin,
		Name:                      "curfew",
		Usage:                     "a job queue on Redis in which nothing outlives its deadline",
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           true,
		Flags:                     []cli.Flag{cli.HelpFlag}, // cli adds it only to a program without a command help
		DisableSliceFlagSeparator: true,                     // a value of --header may have commas
		Commands:                  commands,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              app.WrongFlag,
		CommandNotFound:           func(c *cli.Context, name string) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				name := c.Args().First()
				return app.Usage("there is no command %q%s: see `curfew --help`", name, app.DidYouMean(name, app.NamesOf(c.App.Commands)))
			}
			return cli.ShowAppHelp(c)
		},
	}
	defer app.EndTraces(program)
	err := program.RunContext(ctx, slices.Concat(args[:1], app.FlagsFirst(commands, args[1:])))
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "curfew:", err)
	var coded cli.ExitCoder
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return app.ExitFailed
}
