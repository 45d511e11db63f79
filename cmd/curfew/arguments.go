package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arguments returns the arguments of a command that are no flags. It sets the flags that follow an argument, which cli
// takes for arguments. After -- everything is an argument.
func arguments(c *cli.Context) (words []string, err error) {
	args := c.Args().Slice()
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		return args, nil // cli has removed the -- before it
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(words, args[i+1:]...), nil
		}
		if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
			words = append(words, args[i])
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		names := namesOf(c.Command.Flags, name)
		if names == nil {
			return nil, noFlag(c, name)
		}
		switch {
		case given:
		case isBool(c.Command.Flags, name):
			value = "true"
		case i+1 == len(args):
			return nil, usageOf(c, "--%s needs a value", name)
		default:
			i++
			value = args[i]
		}
		for _, alias := range names {
			if err := c.Set(alias, value); err != nil {
				return nil, usageOf(c, "--%s %q: %v", name, value, err)
			}
		}
	}
	return words, nil
}

// namesOf returns the name and aliases of a flag, nil if there is no such flag.
func namesOf(flags []cli.Flag, name string) []string {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f.Names()
		}
	}
	return nil
}

func isBool(flags []cli.Flag, name string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		_, is := f.(*cli.BoolFlag)
		return is && slices.Contains(f.Names(), name)
	})
}

// usageOf returns an error for wrong use of a command, which ends with how to get its help.
func usageOf(c *cli.Context, format string, args ...any) error {
	return usage("%s: see `%s --help`", fmt.Sprintf(format, args...), c.Command.HelpName)
}

// nameOf returns the name of a command with those above it: functions load.
func nameOf(c *cli.Context) string { return strings.TrimPrefix(c.Command.HelpName, "curfew ") }

// wrongFlag returns the error for flags that cli could not parse. It is an OnUsageError.
func wrongFlag(c *cli.Context, err error, _ bool) error {
	if _, name, found := strings.Cut(err.Error(), "flag provided but not defined: -"); found {
		return noFlag(c, name)
	}
	return usageOf(c, "%v", err)
}

// noFlag returns the error for a flag that a command does not have.
func noFlag(c *cli.Context, name string) error {
	var long []string
	for _, f := range c.Command.Flags {
		long = append(long, "--"+f.Names()[0])
	}
	return usageOf(c, "there is no flag --%s%s", name, didYouMean("--"+name, long))
}

// group returns a command that only has subcommands.
func group(name, about, description string, subcommands ...*cli.Command) *cli.Command {
	var names []string
	for _, sub := range subcommands {
		names = append(names, sub.Name)
	}
	return &cli.Command{
		Name:            name,
		Usage:           about,
		Description:     description,
		Subcommands:     subcommands,
		HideHelpCommand: true,
		OnUsageError:    usageError,
		Action: func(c *cli.Context) error {
			if word := c.Args().First(); word != "" {
				return usage("there is no command `curfew %s %s`%s: write %s; see `curfew %s --help`",
					name, word, didYouMean(word, names), oneOf(names), name)
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// oneOf joins words: "load, ls or prune".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// didYouMean returns a question about the word that is nearest to a mistyped one, "" if none is near.
func didYouMean(word string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		if d := distance(word, w); d < least && d < max(len(w), 2) {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is how many letters must be changed, added or removed to make one word of another, or neighbours exchanged.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
