package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/httpapi"
)

// Docs returns the hidden command that prints pages of the reference, for the build.
func Docs() *cli.Command {
	return &cli.Command{
		Name:      "__docs",
		Usage:     "print the help of all commands as markdown or man, or the reference of the metrics, of the HTTP API or of flows",
		ArgsUsage: "markdown|man|metrics|http|openapi|flow|schema",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			words, err := app.Arguments(c, app.Takes(1, 1, "markdown, man, metrics, http, openapi, flow or schema"))
			if err != nil {
				return err
			}
			var text string
			switch words[0] {
			case "markdown":
				text = "# The command\n\n`make docs` writes this page from the help texts of the commands.\n\n" + page(c.App, "##")
			case "man":
				text = string(md2man.Render([]byte("curfew 1\n==========\n\n# NAME\n\ncurfew - " + c.App.Usage + "\n\n" + page(c.App, "#"))))
			case "metrics":
				text = metricsPage()
			case "http":
				text = httpapi.Reference()
			case "openapi":
				text = string(httpapi.OpenAPI())
			case "flow":
				if text, err = flowPage(c.App.Reader); err != nil {
					return err
				}
			case "schema":
				text = string(flow.Schema())
			default:
				return app.UsageOf(c, "%q must be markdown, man, metrics, http, openapi, flow or schema", words[0])
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return app.Failure(c, err)
		},
	}
}

// fieldsBegin is the line of docs/reference/flow.md below which the tables are. The text above it is written by hand.
const fieldsBegin = "<!-- make docs writes what follows from the tables of package flow. -->"

// flowPage returns the page of the fields of definitions, with new tables.
func flowPage(old io.Reader) (string, error) {
	page, err := io.ReadAll(old)
	if err != nil {
		return "", err
	}
	above, _, found := strings.Cut(string(page), fieldsBegin)
	if !found {
		return "", errors.New("stdin must be docs/reference/flow.md, which has the line " + fieldsBegin)
	}
	return above + fieldsBegin + "\n\n" + flow.Reference(), nil
}

const exitCodes = `| Code | Meaning |
|---|---|
| 0 | done |
| 1 | failed, or a check has found a problem |
| 2 | wrong use: nothing was done |
| 3 | not found: a task, queue, worker, namespace or library |
| 4 | Redis cannot be reached, or is not fit: another kind of server, a wrong password, a replica |
| 5 | refused by the state of what it is about, such as a task that has ended |
| 99 | a measurement has missed its --threshold |
| 124 | the task timed out, or the time to wait for it has passed |
| 130 | interrupted |
`

// page returns the help of all commands, with headings of this level and below.
func page(program *cli.App, level string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Use\n\n    curfew COMMAND [ARGUMENT...] [--FLAG VALUE]\n\nFlags can stand before and after arguments. Data go to stdout, and all else to stderr. "+
		"Each command has the flag --help, which prints what is here.\n\n%s Exit codes\n\n%s\n", level, level, exitCodes)
	d := &describer{b: &b, uses: map[string]int{}}
	d.count(program.Commands)
	fmt.Fprintf(&b, "%s Flags of many commands\n\n%s\n", level, strings.Join(d.common, ""))
	for _, command := range program.Commands {
		d.describe(command, level, program.Name)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// describer writes a page.
type describer struct {
	b      *strings.Builder
	uses   map[string]int // by the line about a flag: how many commands have it
	common []string       // the lines that are not repeated for each command
}

// many is how many commands have a flag whose line is written once.
const many = 30

// count counts how many commands have each flag.
func (d *describer) count(commands []*cli.Command) {
	for _, command := range commands {
		if command.Hidden {
			continue
		}
		for _, f := range flagsOf(command) {
			line := flagLine(f)
			if d.uses[line]++; d.uses[line] == many {
				d.common = append(d.common, line)
			}
		}
		d.count(command.Subcommands)
	}
}

// flagsOf returns the flags of a command but --help.
func flagsOf(command *cli.Command) []cli.Flag {
	return slices.DeleteFunc(slices.Clone(command.VisibleFlags()), func(f cli.Flag) bool { return f.Names()[0] == "help" })
}

// describe writes the help of a command and of those below it.
func (d *describer) describe(command *cli.Command, level, above string) {
	b := d.b
	if command.Hidden {
		return
	}
	name := above + " " + command.Name
	fmt.Fprintf(b, "%s %s\n\n%s.\n\n", level, name, strings.ToUpper(command.Usage[:1])+command.Usage[1:])
	use := cmp.Or(command.UsageText, strings.TrimSpace(name+" "+command.ArgsUsage))
	if len(command.Subcommands) == 0 || command.UsageText != "" {
		fmt.Fprintf(b, "    %s\n\n", strings.ReplaceAll(use, "\n", "\n    "))
	}
	for block := range strings.SplitSeq(command.Description, "\n\n") {
		if block != "" {
			fmt.Fprintf(b, "%s\n\n", paragraph(block))
		}
	}
	var common []string
	for _, f := range flagsOf(command) {
		if line := flagLine(f); d.uses[line] < many {
			b.WriteString(line)
		} else {
			common = append(common, "`"+app.Dashed(f.Names()[0])+"`")
		}
	}
	if len(common) > 0 {
		fmt.Fprintf(b, "- of many commands: %s\n\n", strings.Join(common, ", "))
	} else if len(flagsOf(command)) > 0 {
		b.WriteString("\n")
	}
	for _, below := range command.Subcommands {
		d.describe(below, level+"#", name)
	}
}

// plain keeps characters that mean something in markdown.
var plain = strings.NewReplacer("<", `\<`, "*", `\*`)

// paragraph returns a part of a description. Lines from the first one that is indented on are code or columns, and
// stay as they are.
func paragraph(block string) string {
	lines := strings.Split(strings.Trim(block, "\n"), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  ") })
	if at < 0 {
		return plain.Replace(block)
	}
	indent := len(lines[at])
	for _, line := range lines[at:] {
		indent = min(indent, len(line)-len(strings.TrimLeft(line, " ")))
	}
	for i, line := range lines[:at] {
		lines[i] = plain.Replace(line)
	}
	for i, line := range lines[at:] {
		lines[at+i] = "    " + line[indent:]
	}
	if at > 0 {
		lines = slices.Insert(lines, at, "")
	}
	return strings.Join(lines, "\n")
}

// flagLine returns a line about a flag.
func flagLine(f cli.Flag) string {
	documented, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	value, usage := "", documented.GetUsage()
	if before, rest, found := strings.Cut(usage, "`"); found {
		word, after, _ := strings.Cut(rest, "`")
		value, usage = " "+word, before+word+after
	} else if documented.TakesValue() {
		value = " " + valueOf(f)
	}
	var names []string
	for _, name := range slices.Backward(f.Names()) { // the short ones first
		names = append(names, app.Dashed(name))
	}
	text := "- `" + strings.Join(names, ", ") + value + "`: " + usage
	if given := strings.Trim(documented.GetDefaultText(), `"`); !slices.Contains([]string{"", "false", "0", "0s"}, given) && !strings.Contains(usage, "(default: ") {
		text += " (default: " + given + ")"
	}
	if variables := documented.GetEnvVars(); len(variables) > 0 {
		text += "; from the environment: " + strings.Join(variables, ", then ")
	}
	return text + "\n"
}

// valueOf returns a word for the value of a flag.
func valueOf(f cli.Flag) string {
	switch f := f.(type) {
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Float64Flag:
		return "NUMBER"
	case *cli.GenericFlag:
		if _, ok := f.Value.(*duration.Duration); ok {
			return "DURATION"
		}
	case *cli.StringFlag:
		if words := app.ChoicesOf(f); len(words) > 0 {
			return strings.Join(words, "|")
		}
	}
	return "VALUE"
}
