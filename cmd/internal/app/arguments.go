package app

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Args describes the arguments of a command: their number and their form.
type Args struct {
	least, most int
	what        string // "the name of a namespace", for the error if there are too few
}

// Nothing is for a command without arguments.
var Nothing = Args{}

// Takes returns the Args of a command that takes so many arguments.
func Takes(least, most int, what string) Args { return Args{least, most, what} }

// Arguments returns the arguments of a command that are no flags.
func Arguments(c *cli.Context, t Args) ([]string, error) {
	words := c.Args().Slice()
	switch {
	case len(words) < t.least:
		return nil, UsageOf(c, "%s needs %s", NameOf(c), t.what)
	case t.most == 0 && len(words) > 0 && HasFlag(c.Command, "namespace"):
		return nil, UsageOf(c, "%s takes no argument, and got %q: give the namespace with --namespace", NameOf(c), words[0])
	case t.most == 0 && len(words) > 0:
		return nil, UsageOf(c, "%s takes no argument, and got %q", NameOf(c), words[0])
	case len(words) > t.most:
		return nil, UsageOf(c, "%s takes %s, and got %q too", NameOf(c), t.what, words[t.most])
	}
	return words, nil
}

// AnotherProgram is the ArgsUsage of a command whose arguments are another program and the arguments of that.
const AnotherProgram = "-- COMMAND [ARGUMENT...]"

// FlagsFirst returns the arguments of this program with the flags of the command before its
// arguments, because cli reads no flag after an argument. It does not move arguments after --.
func FlagsFirst(commands []*cli.Command, args []string) []string {
	for i, word := range args {
		if word == "-h" || word == "--help" {
			return args[:i+1] // cli would look for help about what follows
		}
		at := slices.IndexFunc(commands, func(command *cli.Command) bool { return command.HasName(word) })
		if at < 0 || commands[at].ArgsUsage == AnotherProgram {
			break
		}
		if len(commands[at].Subcommands) == 0 {
			return slices.Concat(args[:i+1], sorted(commands[at], args[i+1:]))
		}
		commands = commands[at].Subcommands
	}
	return args
}

// sorted returns the arguments of a command, flags first.
func sorted(command *cli.Command, args []string) []string {
	var flags, words []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return slices.Concat(flags, []string{"--"}, words, args[i+1:])
		case !strings.HasPrefix(arg, "-") || arg == "-":
			words = append(words, arg)
		case !takesValue(command, arg):
			flags = append(flags, arg)
		case i+1 == len(args):
			return append(flags, arg) // cli says that its value is missing
		default:
			i++
			flags = append(flags, arg, args[i])
		}
	}
	return slices.Concat(flags, []string{"--"}, words)
}

// takesValue reports whether the next argument is the value of a flag.
func takesValue(command *cli.Command, arg string) bool {
	f := FlagOf(command, strings.TrimLeft(arg, "-"))
	_, isBool := f.(*cli.BoolFlag)
	return f != nil && !isBool
}

// FlagOf returns the flag of a command that has this name, or nil if the command has no such flag.
func FlagOf(command *cli.Command, name string) cli.Flag {
	for _, f := range command.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func HasFlag(command *cli.Command, name string) bool { return FlagOf(command, name) != nil }

// UsageOf returns an error for wrong use of a command, which ends with how to get its help.
func UsageOf(c *cli.Context, format string, args ...any) error {
	return Usage("%s: see `%s --help`", fmt.Sprintf(format, args...), c.Command.HelpName)
}

// NameOf returns the name of a command with those above it: functions load.
func NameOf(c *cli.Context) string { return strings.TrimPrefix(c.Command.HelpName, c.App.Name+" ") }

// notParsed matches the error of package flag for a value.
var notParsed = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-(\S+): (.*)$`)

// WrongFlag returns the error for flags that cli could not parse. It is the OnUsageError of all commands.
func WrongFlag(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if _, name, ok := strings.Cut(text, "flag provided but not defined: -"); ok {
		return noFlag(c, name)
	}
	if _, name, ok := strings.Cut(text, "flag needs an argument: -"); ok {
		return UsageOf(c, "%s needs a value", Dashed(name))
	}
	if m := notParsed.FindStringSubmatch(text); m != nil {
		return wrongValue(c, m[2], m[1], m[3])
	}
	return UsageOf(c, "%v", err)
}

// wrongValue returns the error for a value that a flag does not take.
func wrongValue(c *cli.Context, name, quoted, why string) error {
	switch FlagOf(c.Command, name).(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		return UsageOf(c, "%s %s must be a whole number", Dashed(name), quoted)
	case *cli.BoolFlag:
		return UsageOf(c, "%s takes no value, and got %s", Dashed(name), quoted)
	}
	return UsageOf(c, "%s %s: %s", Dashed(name), quoted, why)
}

// Dashed returns a flag as it is written: --output, -o.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// noFlag returns the error for a flag that a command does not have.
func noFlag(c *cli.Context, name string) error {
	var long []string
	for _, f := range c.Command.Flags {
		long = append(long, Dashed(f.Names()[0]))
	}
	return UsageOf(c, "there is no flag %s%s", Dashed(name), DidYouMean(Dashed(name), long))
}

// ExplainWrongFlags makes all commands explain errors in their flags.
func ExplainWrongFlags(commands []*cli.Command) {
	for _, command := range commands {
		command.OnUsageError = WrongFlag
		ExplainWrongFlags(command.Subcommands)
	}
}

// Group returns a command that only has subcommands.
func Group(name, about, description string, subcommands ...*cli.Command) *cli.Command {
	names := NamesOf(subcommands)
	for _, c := range subcommands {
		c.HideHelpCommand = true // h and help are names as any other, such as that of a definition
	}
	return &cli.Command{
		Name:            name,
		Usage:           about,
		Description:     description,
		Subcommands:     subcommands,
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if word := c.Args().First(); word != "" {
				return Usage("there is no command `%s %s %s`%s: write %s; see `%s %s --help`",
					c.App.Name, name, word, DidYouMean(word, names), OneOf(names), c.App.Name, name)
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// Moved returns a hidden command that has moved. It ignores its arguments, and returns an error that
// names the new command.
func Moved(name, where string) *cli.Command {
	return &cli.Command{
		Name:            name,
		Usage:           "say where the command is",
		ArgsUsage:       AnotherProgram,
		Hidden:          true,
		HideHelp:        true,
		SkipFlagParsing: true,
		Action:          func(*cli.Context) error { return Usage("%s", where) },
	}
}

// NamesOf returns the names of commands that users may run.
func NamesOf(commands []*cli.Command) (list []string) {
	for _, command := range commands {
		if !command.Hidden {
			list = append(list, command.Name)
		}
	}
	return list
}

// OneOf joins words: "load, ls or prune".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// QuotedOneOf is OneOf for words of a user, which it quotes.
func QuotedOneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(refusal.Clip(word))
	}
	return OneOf(quoted)
}

// DidYouMean returns a question about the word that is nearest to a mistyped one, "" if none is near.
func DidYouMean(word string, words []string) string {
	near := names.Nearest(word, words)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", near)
}
