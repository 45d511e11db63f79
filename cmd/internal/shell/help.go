package shell

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// Help returns the command that prints the help of another. Its own help has the example.
func Help(example string) *cli.Command {
	return &cli.Command{
		Name:            "help",
		Usage:           "print the help of a command, or the list of commands",
		ArgsUsage:       "[COMMAND...]",
		HideHelpCommand: true,
		Description: `The same as --help behind the command:

    ` + example,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			commands := c.App.Commands
			for i, word := range words {
				at := slices.IndexFunc(commands, func(command *cli.Command) bool { return command.HasName(word) })
				if at < 0 {
					return app.Usage("there is no command `%s %s`%s: see `%s %s`", c.App.Name, strings.Join(words[:i+1], " "),
						app.DidYouMean(word, app.NamesOf(commands)), c.App.Name, strings.Join(append(slices.Clone(words[:i]), "--help"), " "))
				}
				commands = commands[at].Subcommands
			}
			return c.App.RunContext(c.Context, slices.Concat([]string{c.App.Name}, words, []string{"--help"}))
		},
	}
}
