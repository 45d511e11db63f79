package flows

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/lines"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say what is wrong with definitions in JSON or YAML, with the line and the path of each fault",
		ArgsUsage: "FILE...",
		Description: `It finds all faults at once, and needs no connection. - is stdin. The exit code is 1 if there is a fault.

    curfew flow check order.yaml
    curfew flow check order.yaml --explain

--explain says for each node how long it can take, how often it is tried, what it waits for, and when the whole has ended at the latest.
A task whose worker dies begins its time in line and its attempt again, at most three times. That is not counted: the timeout of a node
or of the run bounds it too.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "explain", Usage: "say when each node ends at the latest, and what it waits for"},
			&cli.BoolFlag{Name: "json", Usage: "the same as -o json"},
			app.FormatFlag()},
		Action: func(c *cli.Context) error {
			files, err := app.Arguments(c, app.Takes(1, 1<<20, "the names of one or more files"))
			if err != nil {
				return err
			}
			faulty := 0
			for _, file := range files {
				good, err := check(c, file)
				if err != nil {
					return app.Failure(c, err)
				}
				if !good {
					faulty++
				}
			}
			if faulty > 0 {
				return cli.Exit(fmt.Sprintf("%s wrong", app.Plural(int64(faulty), "definition is", "definitions are")), app.ExitFailed)
			}
			return nil
		},
	}
}

// checked is the JSON output of check for one file.
type checked struct {
	Name   string        `json:"name"` // of the file
	Faults []lines.Fault `json:"faults"`
	Plan   *lines.Plan   `json:"plan,omitempty"`
}

// check checks the definition of a file, and reports whether it is good.
func check(c *cli.Context, file string) (good bool, err error) {
	text, err := readFile(c, file)
	if err != nil {
		return false, err
	}
	result := checked{Name: file}
	var faults flow.Faults
	if err := flow.Check(text); err != nil && !errors.As(err, &faults) {
		return false, err
	}
	result.Faults = lines.OfFaults(faults)
	var plan *flow.Plan
	if len(faults) == 0 && c.Bool("explain") {
		if plan, err = flow.Outline(text); err != nil {
			return false, err
		}
		result.Plan = lines.OfPlan(plan)
	}
	switch {
	case c.Bool("json") || app.InJSON(c):
		err = app.PrintLine(c, result)
	case plan != nil:
		err = app.WriteText(c, strings.TrimSuffix(plan.String(), "\n")+"\n")
	default:
		err = app.WriteText(c, faultLines(file, faults))
	}
	return len(faults) == 0, err
}

// faultLines returns a line for each fault: the file, the line in it, the path of the value, and a sentence.
func faultLines(file string, faults flow.Faults) (text string) {
	for _, f := range faults {
		path := f.Path
		if path == "" {
			path = "the definition"
		}
		text += fmt.Sprintf("%s:%d: %s: %s\n", app.PlainText(file), f.Line, app.PlainText(path), app.Plain(f.Text))
	}
	return text
}

// readFile reads the text of a definition. - is stdin.
func readFile(c *cli.Context, file string) ([]byte, error) {
	if file == "" {
		return nil, app.UsageOf(c, "the name of a file is empty")
	}
	return app.ReadFile(c, "the definition", file)
}
