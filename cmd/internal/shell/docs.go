package shell

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// Page is a page of the reference that is made from the code.
type Page struct {
	Word string // the argument that names it
	// Write returns the page. It can read the page of before, whose text above the tables is written by hand.
	Write func(before io.Reader) (string, error)
}

// Docs returns the hidden command that prints pages of the reference, for the build: of the commands, under a title, and others.
func Docs(title string, others ...Page) *cli.Command {
	words := []string{"markdown", "man"}
	for _, sibling := range others {
		words = append(words, sibling.Word)
	}
	return &cli.Command{
		Name:      "__docs",
		Usage:     "print the help of all commands as markdown or man, or another page of the reference",
		ArgsUsage: strings.Join(words, "|"),
		Hidden:    true,
		Action: func(c *cli.Context) error {
			arguments, err := app.Arguments(c, app.Takes(1, 1, app.OneOf(words)))
			if err != nil {
				return err
			}
			at := slices.Index(words, arguments[0])
			var text string
			switch at {
			case -1:
				return app.UsageOf(c, "%q must be %s", arguments[0], app.OneOf(words))
			case 0:
				text = "# " + title + "\n\n`make docs` writes this page from the help texts of the commands.\n\n" + page(c.App, "##")
			case 1:
				text = string(md2man.Render([]byte(c.App.Name + " 1\n==========\n\n# NAME\n\n" + c.App.Name + " - " + c.App.Usage + "\n\n" + page(c.App, "#"))))
			default:
				if text, err = others[at-2].Write(c.App.Reader); err != nil {
					return err
				}
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return app.Failure(c, err)
		},
	}
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
	fmt.Fprintf(&b, "%s Use\n\n    %s COMMAND [ARGUMENT...] [--FLAG VALUE]\n\nFlags can stand before and after arguments. Data go to stdout, and all else to stderr. "+
		"Each command has the flag --help, which prints what is here.\n\n", level, program.Name)
	if program.Description != "" {
		fmt.Fprintf(&b, "%s\n\n", paragraphs(program.Description))
	}
	fmt.Fprintf(&b, "%s Exit codes\n\n%s\n", level, exitCodes)
	d := &describer{b: &b, uses: map[string]int{}}
	d.count(program.Commands)
	if len(d.common) > 0 {
		fmt.Fprintf(&b, "%s Flags of many commands\n\n%s\n", level, strings.Join(d.common, ""))
	}
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

// describe writes the help of a command and its subcommands.
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
	if command.Description != "" {
		fmt.Fprintf(b, "%s\n\n", paragraphs(command.Description))
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

// paragraphs returns a description.
func paragraphs(description string) string {
	var blocks []string
	for block := range strings.SplitSeq(description, "\n\n") {
		if block != "" {
			blocks = append(blocks, paragraph(block))
		}
	}
	return strings.Join(blocks, "\n\n")
}

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
		if app.IsDuration(f) {
			return "DURATION"
		}
	case *cli.StringFlag:
		if words := app.ChoicesOf(f); len(words) > 0 {
			return strings.Join(words, "|")
		}
	}
	return "VALUE"
}
