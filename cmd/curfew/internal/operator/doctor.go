package operator

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/doctor"
	"github.com/curfew-dev/curfew/queue"
)

// Doctor returns the command that checks a server and a namespace.
func Doctor() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check Redis, its settings, the rights of this user and the work of a namespace, and say how to cure what is wrong",
		Description: `It changes no data. Each line is ok, warn or fail, the subject, and what was found with its cure. It exits with 1 if a
line is fail, and with 4 if Redis cannot be reached or used.

    curfew doctor --namespace shop
    curfew doctor --role produce           may this user enqueue? docs/how-to/security.md has the rights of each role
    curfew doctor --quick                  for health checks: can tasks be enqueued, and do they end on time? Prints problems only

What the user may not see, or the server does not tell, is "not checked", and is no problem.`,
		Flags: append(app.NamespaceFlags(),
			app.ChoiceFlag("role", "all", "the role whose rights this user must have: all, produce, work, reap or read", "all", "produce", "work", "reap", "read"),
			&cli.BoolFlag{Name: "quick", Usage: "check only whether tasks can be enqueued and end on time now, and print problems only"},
			&cli.BoolFlag{Name: "strict", Usage: "a warning is a failure"},
			app.ListFlag()),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			return app.Failure(c, examine(c))
		},
	}
}

var findings = app.List[doctor.Finding]{
	Columns: []app.Column[doctor.Finding]{
		{Name: "level", Show: func(f doctor.Finding) string { return string(f.Level) }, Paint: colourOf},
		{Name: "node", Wide: true, Show: func(f doctor.Finding) string { return f.Node }},
		{Name: "subject", Show: func(f doctor.Finding) string { return f.Subject }},
		{Name: "finding", Show: func(f doctor.Finding) string {
			text := f.Text
			if f.Node != "" {
				text = f.Node + ": " + text
			}
			if f.Cure != "" {
				text += ": " + f.Cure
			}
			return app.Plain(text)
		}},
	},
	ID: func(f doctor.Finding) string { return f.Subject },
}

func colourOf(f doctor.Finding) app.Colour {
	switch f.Level {
	case doctor.Fail:
		return app.Red
	case doctor.Warn:
		return app.Yellow
	}
	return app.Green
}

func examine(c *cli.Context) error {
	if c.String("namespace") == "" {
		return app.Usage("--namespace must not be empty")
	}
	rdb, err := app.Connect(c)
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer app.CutOff(c, rdb)()
	report, err := doctor.Examine(c.Context, rdb, doctor.Config{Namespace: c.String("namespace"), Access: queue.Access(c.String("role")), Quick: c.Bool("quick")})
	if err != nil {
		return err
	}
	if c.Bool("quick") {
		report = slices.DeleteFunc(report, func(f doctor.Finding) bool { return f.Level == doctor.OK })
	}
	if err := findings.Print(c, app.All(report)); err != nil {
		return err
	}
	bad := 0
	for _, f := range report {
		if f.Level == doctor.Fail || f.Level == doctor.Warn && c.Bool("strict") {
			bad++
		}
	}
	if bad > 0 {
		return cli.Exit(fmt.Sprintf("%s: see above", app.Plural(int64(bad), "problem", "problems")), app.ExitFailed)
	}
	return nil
}
