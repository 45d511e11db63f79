package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// anyValue returns a flag as it can be given on a command line. A URL has a password.
func anyValue(t *testing.T, f cli.Flag, config string) (words []string) {
	t.Helper()
	name := app.Dashed(f.Names()[0])
	usage := ""
	if documented, is := f.(cli.DocGenerationFlag); is {
		usage = documented.GetUsage()
	}
	address := "redis://u:" + secret + "@" + nobody
	switch f := f.(type) {
	case *cli.BoolFlag:
		return []string{name}
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Float64Flag:
		return []string{name, "1"}
	case *cli.GenericFlag:
		switch {
		case strings.Contains(usage, "URL"):
			return []string{name, "k=" + address}
		case f.Value.String() != "": // a duration
			return []string{name, "1h"}
		}
		return []string{name, "a", name, "b"}
	case *cli.StringSliceFlag:
		return []string{name, "a=b,c", name, "d"}
	case *cli.StringFlag:
		switch {
		case name == "--config":
			return []string{name, config}
		case strings.Contains(usage, "URL"):
			return []string{name, address}
		}
		return []string{name, "x"}
	}
	t.Fatalf("%s is a %T: say which values it takes", name, f)
	return nil
}

// With all its flags, each command logs the value of each with --verbose, and no password. A wrong --color ends it then.
func TestVerboseTellsEachSettingOfEachCommand(t *testing.T) {
	config := settingsFile(t, "")
	for _, l := range leaves(t) {
		var flags, want []string
		for _, f := range l.command.Flags {
			name := f.Names()[0]
			if slices.Contains([]string{"color", "quiet", "help"}, name) { // --verbose excludes --quiet
				continue
			}
			words := anyValue(t, f, config)
			if name == "log-format" {
				words = []string{"--log-format", "text"}
			}
			flags, want = append(flags, words...), append(want, "name="+name+" value=")
		}
		args := slices.Concat(strings.Fields(l.name), flags, []string{"--color", "blue"})
		code, _, errs := curfew(t, args...)
		if code != app.ExitUsage || strings.Contains(errs, secret) || strings.ContainsAny(errs, "{}&") {
			t.Errorf("curfew %q: exit %d, %s", args, code, errs)
		}
		for _, line := range want {
			if !strings.Contains(errs, line) {
				t.Errorf("curfew %s does not tell %s: %s", l.name, line, errs)
			}
		}
	}
}

func TestVerboseTellsSettingsAsTheyAreWritten(t *testing.T) {
	for args, want := range map[string]string{
		"deadlines --within 36h":                          "name=within value=1d12h from=",
		"ls --status FAILED,PENDING":                      "name=status value=FAILED,PENDING from=",
		"work --kind a --kind b -- true":                  `name=kind value="a b" from=`,
		"work --http k=http://u:" + secret + "@localhost": `name=http value="(not shown)" from=`,
		"demo --timeout 1h":                               "name=timeout value=1h from=",
		"ls --limit 7":                                    "name=limit value=7 from=",
	} {
		words := strings.Fields(args)
		_, _, errs := curfew(t, slices.Insert(words, 1, "-v", "--color", "blue")...)
		if !strings.Contains(errs, want) || strings.Contains(errs, secret) {
			t.Errorf("curfew %s -v tells %s; want %s", args, errs, want)
		}
	}
}

// The command demo runs by itself, and has subcommands.
func TestTheDemoTakesTheFlagsOfAllCommands(t *testing.T) {
	t.Setenv("CURFEW_CONFIG", settingsFile(t, "timeout = 1h\n"))
	for args, want := range map[string]string{
		"demo":                     "--timeout 1h must be from 10ms to 1m", // from the file
		"demo --quiet --verbose":   "give --quiet or --verbose, not both",
		"demo --quiet crash":       "flags of `curfew demo crash` stand behind it: see `curfew demo --help`",
		"demo --timeout 1s fanout": "flags of `curfew demo fanout` stand behind it",
		"demo crash --quiet":       "--timeout 1h must be from 100ms to 1m",
	} {
		if code, out, errs := curfew(t, strings.Fields(args)...); code != app.ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("curfew %s: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
	if _, out, _ := curfew(t, "__complete", "--", "demo", "--qu"); !strings.HasPrefix(out, "--quiet\t") {
		t.Errorf("a shell is proposed %q", out)
	}
}
