package app

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
)

// Program is a program that consists of commands. Commands keep the values of their flags, so a Program runs once.
type Program struct {
	Name        string
	Usage       string // a sentence about it
	Description string
	Commands    []*cli.Command
}

// Main runs the program with the arguments of the process until it ends or a signal interrupts it, and ends the process.
func (p Program) Main() {
	ctx := UntilSignalled()
	// Without this, a write to a pipe that nobody reads kills the process. Now it returns an error, which commands know.
	// signal.Ignore would do the same to the commands that curfew work starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	QuietClient()
	os.Exit(p.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// UntilSignalled returns a context that ends with the first signal. A later signal ends the process at once, unless the command that
// runs handles signals.
func UntilSignalled() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(Doubled, stop) })
	return ctx
}

// QuietClient stops the Redis client from writing to stderr, because commands return its errors and print them once.
func QuietClient() { redis.SetLogger(quiet{}) }

// quiet is a logger that drops everything.
type quiet struct{}

// Printf drops the line.
func (quiet) Printf(context.Context, string, ...any) {}

// Run runs the program with a command line, which begins with its name. It writes an error to stderr, and returns the exit code.
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ExplainWrongFlags(p.Commands)
	program := &cli.App{
		Reader:                    stdin,
		Name:                      p.Name,
		Usage:                     p.Usage,
		Description:               p.Description,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           true,
		Flags:                     []cli.Flag{cli.HelpFlag}, // cli adds it only to a program without a command help
		DisableSliceFlagSeparator: true,                     // a value of --header may have commas
		Commands:                  p.Commands,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              WrongFlag,
		CommandNotFound:           func(c *cli.Context, name string) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				name := c.Args().First()
				return Usage("there is no command %q%s: see `%s --help`", name, DidYouMean(name, NamesOf(c.App.Commands)), p.Name)
			}
			return cli.ShowAppHelp(c)
		},
	}
	defer EndTraces(program)
	err := program.RunContext(ctx, slices.Concat(args[:1], FlagsFirst(p.Commands, args[1:])))
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	var coded cli.ExitCoder
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return ExitFailed
}
