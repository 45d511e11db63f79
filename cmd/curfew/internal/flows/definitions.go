package flows

import (
	"errors"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

var putList = app.List[lines.Put]{
	ID: func(l lines.Put) string { return l.Definition },
	Columns: []app.Column[lines.Put]{
		{Name: "definition", Show: func(l lines.Put) string { return app.PlainWord(l.Definition) }},
		{Name: "version", Show: func(l lines.Put) string { return app.PlainWord(l.Version) }},
		{Name: "what", Show: func(l lines.Put) string {
			if l.New {
				return "stored"
			}
			return "was stored before"
		}},
	},
}

func putCommand() *cli.Command {
	return &cli.Command{
		Name:      "put",
		Usage:     "store definitions, each as a new version",
		ArgsUsage: "FILE...",
		Description: `A stored version never changes, and the runs that follow it continue. Without a version in the file it counts: 1, 2, 3. The same text
again stores nothing. A version that is stored with another text is refused: exit code 5. All files are checked first: if one is
wrong, nothing is stored. - is stdin.

    curfew flow put order.yaml`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: func(c *cli.Context) error {
			t := app.Takes(1, 1<<20, "the names of one or more files")
			files, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			texts, err := readGood(c, files)
			if err != nil {
				return app.Failure(c, err)
			}
			return app.OnNamespace(t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				return putList.Print(c, func(yield func(lines.Put, error) bool) {
					for _, text := range texts {
						stored, err := flow.Put(c.Context, q, text)
						if !yield(lines.OfPut(stored), failure(err)) || err != nil {
							return
						}
					}
				})
			})(c)
		},
	}
}

// readGood reads definitions. It returns the faults of the first one that is wrong.
func readGood(c *cli.Context, files []string) (texts [][]byte, err error) {
	for _, file := range files {
		text, err := readFile(c, file)
		if err != nil {
			return nil, err
		}
		var faults flow.Faults
		if err := flow.Check(text); errors.As(err, &faults) {
			suffix := ""
			if n := len(faults) - 1; n > 0 {
				suffix = "; `curfew flow check` prints this and " + app.Plural(int64(n), "more fault", "more faults")
			}
			line := faultLines(file, faults[:1])
			return nil, app.Usage("nothing was stored: %s%s", line[:len(line)-1], suffix)
		} else if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

var definitionList = app.List[lines.Definition]{
	ID: func(l lines.Definition) string { return l.Definition },
	Columns: []app.Column[lines.Definition]{
		{Name: "definition", Show: func(l lines.Definition) string { return app.PlainWord(l.Definition) }},
		{Name: "version", Show: func(l lines.Definition) string { return app.PlainWord(l.Version) }},
		{Name: "versions", Right: true, Show: func(l lines.Definition) string { return strconv.Itoa(len(l.Versions)) }},
	},
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the definitions, with their newest versions",
		Description: `    curfew flow ls
    curfew flow ls -o json`,
		Flags: append(app.NamespaceFlags(), app.ListFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			definitions, err := flow.List(c.Context, q)
			if err != nil {
				return err
			}
			return definitionList.Print(c, func(yield func(lines.Definition, error) bool) {
				for _, d := range definitions {
					if !yield(lines.OfDefinition(d), nil) {
						return
					}
				}
			})
		}),
	}
}

// versionFlag returns the flag for a version of a definition.
func versionFlag(usage string) cli.Flag { return &cli.StringFlag{Name: "version", Usage: usage} }

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the text of a definition, as it was stored",
		ArgsUsage: "DEFINITION",
		Description: `    curfew flow show order
    curfew flow show order --version 2 > order-2.yaml`,
		Flags: append(app.NamespaceFlags(), versionFlag("this version (default: the newest)")),
		Action: func(c *cli.Context) error {
			if err := checkVersion(c); err != nil {
				return err
			}
			return app.OnNamespaceAs(queue.AccessRead, app.Takes(1, 1, "the name of one definition"), func(c *cli.Context, q *queue.Queue, words []string) error {
				text, err := definition(c, q, words[0])
				if err != nil {
					return err
				}
				return app.WriteText(c, string(text))
			})(c)
		},
	}
}

func checkVersion(c *cli.Context) error {
	if c.IsSet("version") && c.String("version") == "" {
		return app.UsageOf(c, "--version must not be empty: leave it out for the newest")
	}
	return nil
}

// definition returns the text of a definition. If there is no such definition, or no such version, the error has the nearest name.
func definition(c *cli.Context, q *queue.Queue, id string) ([]byte, error) {
	version := c.String("version")
	definitions, err := flow.List(c.Context, q)
	if err != nil {
		return nil, err
	}
	if err := known(definitions, id, version); err != nil {
		return nil, err
	}
	text, _, err := flow.Get(c.Context, q, id, version)
	return text, failure(err)
}

// known returns an error if there is no such definition, or if it has no such version. version "" is the newest.
func known(all []flow.Definition, id, version string) error {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.ID)
		if d.ID != id {
			continue
		}
		for _, has := range d.Versions {
			if has == version || version == "" {
				return nil
			}
		}
		return app.NotFound("%s has no version %q%s: its newest version is %s", id, refusal.Clip(version), app.DidYouMean(version, d.Versions), d.Version)
	}
	return app.NotFound("there is no definition %q in this namespace%s: `curfew flow ls` lists them", refusal.Clip(id), app.DidYouMean(id, ids))
}
