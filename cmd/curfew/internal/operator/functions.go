package operator

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

const functionsHelp = `Programs in other languages call Redis functions whose names begin with curfew_ (docs/reference/protocol.md). They are in
the library "curfew", which reapers and programs in Go load when they start, if they may. Programs in Go also call
functions of their own version, in the same library or in one named curfew_<digest>.

    curfew functions load                                        after FUNCTION FLUSH, and on a new server
    curfew functions show | redis-cli -x FUNCTION LOAD REPLACE   the same, by somebody else
    curfew functions ls                                          what is there?

The user needs +function|list +function|load +function|delete +multi +exec. Libraries of other programs are never
touched. In a cluster these commands work on every master.`

func Functions() *cli.Command {
	return app.Group("functions", "load, list, show and remove the Redis functions of Curfew", functionsHelp,
		functionsLoadCommand(), functionsListCommand(), functionsShowCommand(), functionsPruneCommand())
}

func functionsLoadCommand() *cli.Command {
	return &cli.Command{
		Name:  "load",
		Usage: "load the functions for programs in other languages, on every master",
		Description: `Loads the library "curfew" into each master that does not have it, or has an older version. If a master has a
newer version, the command leaves it and fails, because programs may need it; --force replaces it. A library
"curfew" of another program is never replaced.

    curfew functions load`,
		Flags: app.ServerFlags(
			&cli.BoolFlag{Name: "force", Usage: "replace a newer library too, or one that works with records that this one does not"},
			app.FormatFlag()),
		Action: app.OnServer(app.Nothing, func(c *cli.Context, s *operate.Server, _ []string) error {
			return tellLoaded(c, s.Load(c.Context, c.Bool("force")))
		}),
	}
}

// loadText describes the effect of a load on one master.
func loadText(did operate.Loaded) string {
	switch did.Word {
	case operate.LoadedNew:
		return fmt.Sprintf("loaded build %d", did.Build)
	case operate.LoadedReplaced:
		return fmt.Sprintf("replaced build %d by build %d", did.Before, did.Build)
	case operate.LoadedSame:
		return fmt.Sprintf("has build %d already", did.Build)
	case operate.LeftNewer:
		return fmt.Sprintf("left build %d, which is newer than build %d of this program", did.Before, did.Build)
	case operate.LeftOther:
		return fmt.Sprintf("left build %d, which works with records that build %d of this program does not know, or is another text", did.Before, did.Build)
	}
	return "left the library curfew, which belongs to another program"
}

func tellLoaded(c *cli.Context, all []operate.Loaded) error {
	var failed []error
	remaining, foreign := 0, 0
	for _, did := range all {
		if did.Err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", did.Node, did.Err))
		}
		switch did.Word {
		case operate.LeftForeign:
			foreign++
		case operate.LeftNewer, operate.LeftOther:
			remaining++
		}
		if err := tellLoad(c, did); err != nil {
			return err
		}
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case foreign > 0:
		return errors.New("not loaded: another program has a library named curfew, and this one has no other name")
	case remaining > 0:
		return errors.New("not loaded: another version is there; use that version of curfew, or --force")
	}
	return nil
}

func tellLoad(c *cli.Context, did operate.Loaded) error {
	if app.InJSON(c) {
		line := map[string]any{"type": "node", "node": did.Node, "did": did.Word, "build": did.Build, "before": did.Before}
		if did.Err != nil {
			line["did"], line["error"] = "failed", did.Err.Error()
		}
		return app.PrintLine(c, line)
	}
	if did.Err != nil {
		return nil // it is printed at the end
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  %s\n", did.Node, loadText(did))
	return err
}

func functionsListCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the libraries of Curfew on every master",
		Description: `It says which are those of this program, of other versions, and of other programs.

    curfew functions ls`,
		Flags: app.ServerFlags(app.FormatFlag()),
		Action: app.OnServer(app.Nothing, func(c *cli.Context, s *operate.Server, _ []string) error {
			return tellLibraries(c, s.Libraries(c.Context))
		}),
	}
}

// libraryText describes a library.
func libraryText(l operate.Library) string {
	switch {
	case l.Kind == operate.Foreign:
		return "belongs to another program"
	case l.Mine && l.Kind == operate.Facade:
		return "the one of this program"
	case l.Kind == operate.Facade:
		return "of another version"
	case l.Mine:
		return "calls of programs in Go, of the version of this program"
	}
	return "calls of programs in Go, of another version"
}

func tellLibraries(c *cli.Context, all []operate.Libraries) error {
	var failed []error
	for _, node := range all {
		if node.Err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", node.Node, node.Err))
			continue
		}
		if len(node.Has) == 0 && !app.InJSON(c) {
			if _, err := fmt.Fprintf(c.App.Writer, "%s  has no library of Curfew: `curfew functions load` loads it\n", node.Node); err != nil {
				return err
			}
		}
		for _, l := range node.Has {
			if err := tellLibrary(c, node.Node, l, nil); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// tellLibrary prints a line about a library. more are further fields of JSON.
func tellLibrary(c *cli.Context, node string, l operate.Library, more map[string]any) error {
	if app.InJSON(c) {
		line := map[string]any{"type": "library", "node": node, "library": l.Name, "kind": l.Kind, "function_count": l.Functions, "mine": l.Mine}
		if l.Kind == operate.Facade {
			line["build"], line["records"] = l.Build, l.Records
		}
		for name, value := range more {
			line[name] = value
		}
		return app.PrintLine(c, line)
	}
	build := ""
	if l.Kind == operate.Facade {
		build = fmt.Sprintf("build %d", l.Build)
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s  %-19s  %-8s  %2d functions  %s\n", node, l.Name, build, l.Functions, libraryText(l))
	return err
}

func functionsShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the text of a library, as FUNCTION LOAD takes it",
		ArgsUsage: "[NAME]",
		Description: `Without NAME it prints the library of this program, and needs no connection:

    curfew functions show | redis-cli -x FUNCTION LOAD REPLACE

With NAME, as ls prints it, it prints the library that the server has.`,
		Flags: app.ServerFlags(),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return app.OnServer(app.Takes(0, 1, "the name of one library"), showLibrary)(c)
			}
			facade, err := lua.LoadFacade(nil)
			if err == nil {
				_, err = io.WriteString(c.App.Writer, facade.Text())
			}
			return app.Failure(c, err)
		},
	}
}

// showLibrary prints a library that a master has.
func showLibrary(c *cli.Context, s *operate.Server, words []string) error {
	name := words[0]
	var names []string
	for _, node := range s.Libraries(c.Context) {
		if node.Err != nil {
			return fmt.Errorf("%s: %w", node.Node, node.Err)
		}
		for _, l := range node.Has {
			if l.Name == name {
				_, err := io.WriteString(c.App.Writer, l.Text)
				return err
			}
			names = append(names, l.Name)
		}
	}
	return app.NotFound("there is no library %q of Curfew%s: `curfew functions ls` lists them", refusal.Clip(name), app.DidYouMean(name, names))
}

func functionsPruneCommand() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "list, and with --yes delete, the libraries of other versions of programs in Go",
		Description: `Each version of the Go packages has functions of its own. Those of versions that nobody runs any more take memory, and
slow Redis down a little. Redis does not say who still calls them. But deleting one does no harm: a program in Go
whose library is gone loads it again by itself, with its next call, or sends scripts if it may not. Programs in other
languages do not use these libraries. The library "curfew" and that of this program are kept.

    curfew functions prune
    curfew functions prune --yes`,
		Flags: app.ServerFlags(
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "delete them; otherwise they are only listed"},
			app.FormatFlag()),
		Action: app.OnServer(app.Nothing, prune),
	}
}

func prune(c *cli.Context, s *operate.Server, _ []string) error {
	nodes := s.Libraries(c.Context)
	if c.Bool("yes") {
		nodes = s.Prune(c.Context, nodes)
	}
	var failed []error
	n := int64(0)
	for _, node := range nodes {
		if node.Err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", node.Node, node.Err))
		}
		for _, l := range node.Unused() {
			n++
			if err := tellLibrary(c, node.Node, l, map[string]any{"deleted": c.Bool("yes")}); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(failed...); err != nil || app.InJSON(c) {
		return err
	}
	end := "no library to delete"
	switch {
	case n > 0 && c.Bool("yes"):
		end = "deleted " + app.Plural(n, "library", "libraries")
	case n > 0:
		end = app.Plural(n, "library", "libraries") + " would be deleted: --yes deletes"
	}
	_, err := fmt.Fprintln(c.App.Writer, end)
	return err
}
