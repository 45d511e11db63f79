package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

// forAll is the heading of the flags that all commands have, in their help.
const forAll = "all commands"

// endless names the commands that run until they are interrupted. They wait for Redis as long as it takes.
var endless = []string{"dev", "work", "reap", "serve", "top"}

// Share gives each command the flags that all commands have.
func Share(commands []*cli.Command) {
	known := map[string]bool{}
	for command := range running(commands) {
		if command.Hidden || command.SkipFlagParsing {
			continue
		}
		own := map[string]bool{}
		for _, f := range command.Flags {
			names := namesOf(f)
			known[names[0]] = true
			for _, name := range names {
				own[name] = true
			}
		}
		for _, f := range sharedFlags(command, own["redis"]) {
			if name := namesOf(f)[0]; !own[name] {
				command.Flags = append(command.Flags, f)
				known[name] = true
			}
		}
		command.Before = func(c *cli.Context) error { return applyShared(c, known) }
	}
}

// namesOf returns the names of a flag, like its method Names, but without the regular expression,
// which would slow the start of the program: Share needs the names of all flags.
func namesOf(f cli.Flag) []string {
	var name string
	var aliases []string
	switch f := f.(type) {
	case *cli.BoolFlag:
		name, aliases = f.Name, f.Aliases
	case *cli.GenericFlag:
		name, aliases = f.Name, f.Aliases
	case *cli.StringFlag:
		name, aliases = f.Name, f.Aliases
	default:
		return f.Names()
	}
	return append([]string{name}, aliases...)
}

// Runs reports whether a command does something itself: a Group only has subcommands.
func Runs(command *cli.Command) bool {
	return len(command.Subcommands) == 0 || len(command.Flags) > 0 // a Group has no flags
}

// running returns the commands that do something themselves.
func running(commands []*cli.Command) iter.Seq[*cli.Command] {
	return func(yield func(*cli.Command) bool) {
		for _, command := range commands {
			if Runs(command) && !yield(command) {
				return
			}
			for sub := range running(command.Subcommands) {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

func sharedFlags(command *cli.Command, connects bool) []cli.Flag {
	colour := ChoiceFlag("color", "auto", "auto, always or never; auto: on a terminal, unless NO_COLOR is set or TERM is dumb", "auto", "always", "never")
	format := ChoiceFlag("log-format", "text", "text or json; the log goes to stderr", "text", "json")
	colour.Category, format.Category = forAll, forAll
	flags := []cli.Flag{
		colour, format,
		&cli.StringFlag{Name: "config", Category: forAll, EnvVars: []string{"CURFEW_CONFIG"}, DefaultText: "curfew/config in your folder of settings",
			Usage: "a file with lines such as namespace = shop: values for flags that are given neither here nor by the environment"},
		&cli.BoolFlag{Name: "no-progress", Category: forAll, Usage: "do not show how far a long command is"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: forAll, Usage: "print ids where they can be printed, and no remarks"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Category: forAll, Usage: "log what is done, and where each setting is from"},
	}
	if connects && !slices.Contains(endless, command.Name) {
		flags = append(flags, &cli.GenericFlag{Name: "request-timeout", Category: forAll, Value: newDuration(0), DefaultText: "30s for most calls",
			Usage: "give up when Redis has not answered for so long"})
	}
	return flags
}

// applyShared reads the file of settings, and makes the flags of all commands hold.
func applyShared(c *cli.Context, known map[string]bool) error {
	if sub := c.Args().First(); c.NumFlags() > 0 && c.Command.Command(sub) != nil {
		return UsageOf(c, "flags of `%s %s` stand behind it", c.Command.HelpName, sub)
	}
	settings, path, err := readSettings(c, known)
	if err != nil {
		return err
	}
	from := map[string]string{} // of a setting: the file
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		f := FlagOf(c.Command, name)
		if f == nil || c.IsSet(name) {
			continue
		}
		from[name] = path
		if err := c.Set(name, settings[name]); err != nil {
			return Usage("%s: %v", path, wrongValue(c, name, strconv.Quote(settings[name]), err.Error()))
		}
	}
	if c.Bool("quiet") && c.Bool("verbose") {
		return UsageOf(c, "give --quiet or --verbose, not both")
	}
	if c.Bool("quiet") && !c.IsSet("output") && canPrint(c.Command, "id") {
		if err := c.Set("output", "id"); err != nil {
			return err
		}
	}
	if c.Bool("verbose") {
		tellSettings(c, from)
	}
	return nil
}

func canPrint(command *cli.Command, format string) bool {
	f, ok := FlagOf(command, "output").(*cli.StringFlag)
	return ok && slices.Contains(ChoicesOf(f), format)
}

// readSettings reads the file of --config. Without that flag the file need not exist.
func readSettings(c *cli.Context, known map[string]bool) (settings map[string]string, path string, err error) {
	path = c.String("config")
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, "", nil // no home folder, as in a container
		}
		path = filepath.Join(dir, "curfew", "config")
	}
	file, err := os.Open(path)
	switch {
	case c.String("config") == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return nil, "", nil
	case err != nil:
		return nil, "", Usage("--config: %v", err)
	}
	defer file.Close()
	settings, err = parseSettings(file, path, known)
	return settings, path, err
}

func parseSettings(in io.Reader, path string, known map[string]bool) (map[string]string, error) {
	settings := map[string]string{}
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		_, twice := settings[name]
		switch {
		case !ok: // does not quote the line, which may be a password
			return nil, Usage("%s: line %d: write name = value, such as namespace = shop", path, number)
		case name == "config" || !known[name]:
			return nil, Usage("%s: line %d: there is no flag --%s%s", path, number, Plain(name), DidYouMean(name, slices.Sorted(maps.Keys(known))))
		case twice:
			return nil, Usage("%s: line %d: %s is there twice", path, number, name)
		}
		settings[name] = value
	}
	if err := lines.Err(); err != nil {
		return nil, Usage("%s: %v", path, err)
	}
	return settings, nil
}

// urls are the flags whose values are URLs. A URL can have a password.
var urls = []string{"redis", "http"}

// tellSettings logs the settings that are not defaults, and where each is from. It does not show URLs.
func tellSettings(c *cli.Context, files map[string]string) {
	log := Logger(c)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		value, from := settingOf(c, f), "the command line"
		switch {
		case files[name] != "":
			from = files[name]
		case fromEnvironment(f, value):
			from = "the environment"
		}
		if slices.Contains(urls, name) {
			value = "(not shown)"
		}
		log.Debug("Setting", "name", name, "value", value, "from", from)
	}
}

// settingOf returns the value of a flag as it can be written on a command line.
func settingOf(c *cli.Context, f cli.Flag) string {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.GenericFlag: // Context.Value panics for it
		return fmt.Sprint(c.Generic(name))
	case *cli.StringSliceFlag:
		return strings.Join(c.StringSlice(name), ",")
	}
	return fmt.Sprint(c.Value(name))
}

func fromEnvironment(f cli.Flag, value string) bool {
	documented, ok := f.(cli.DocGenerationFlag)
	return ok && slices.ContainsFunc(documented.GetEnvVars(), func(name string) bool { return os.Getenv(name) == value })
}

// Note writes a remark to stderr, unless --quiet is given. Errors and questions are no remarks.
func Note(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") {
		fmt.Fprintf(c.App.ErrWriter, format+"\n", args...)
	}
}
