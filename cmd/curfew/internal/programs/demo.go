package programs

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/demo"
)

func Demo() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "show a task that hangs, ignores its context, and is ended on time; uses an in-memory Redis in this process",
		Description: `Without a scene it shows one task. A scene fails if what it promises does not happen:

    curfew demo
    curfew demo crash
    curfew demo fanout --redis redis://localhost:6379`,
		Flags: []cli.Flag{
			app.DurationFlag("timeout", 2*time.Second, "how long the task may take"),
		},
		Subcommands:     []*cli.Command{crashCommand(), fanoutCommand()},
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if word := c.Args().First(); word != "" {
				scenes := []string{"crash", "fanout"}
				return app.Usage("there is no scene `curfew demo %s`%s: write %s, or none; see `curfew demo --help`", word, app.DidYouMean(word, scenes), app.OneOf(scenes))
			}
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			t := app.DurationOf(c, "timeout")
			if t < 10*time.Millisecond || t > time.Minute {
				return app.Usage("--timeout %v must be from 10ms to 1m", duration.Duration(t))
			}
			return app.Failure(c, demo.Run(c.Context, c.App.Writer, t))
		},
	}
}
