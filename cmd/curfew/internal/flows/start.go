package flows

import (
	"cmp"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/tasks"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "start a run of a definition, and print its id",
		ArgsUsage: "DEFINITION",
		Description: `The parameters are the members of the object of --input, which is JSON, - for stdin, or @FILE. -p gives one of them: its value is JSON,
or the text as it stands if it is no JSON.

    curfew flow run order --input '{"pages":3}'
    curfew flow run order -p pages=3 -p title=Winter --wait

Without --timeout the run has the time of its definition. With --id or --idempotency-key the command can be repeated: the run
is started once. --wait prints the result, and the exit code is 124 if the run timed out, and 1 if it failed or was cancelled. An
interrupted wait leaves the run as it is. A worker that runs flows must be there: ` + "`curfew work --flows`" + `.`,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "input", Usage: "an object with the parameters of the run, as JSON, - or @FILE"},
			&cli.StringSliceFlag{Name: "p", Usage: "a parameter, NAME=VALUE; can be given again"},
			versionFlag("follow this version (default: the newest)"),
			app.DurationFlag("timeout", 0, "the run ends this long from now at the latest (default: the time of the definition)"),
			&cli.StringFlag{Name: "queue", Value: "default", Usage: "the queue of the run"},
			&cli.StringFlag{Name: "id", Usage: "the id of the run: the partition, a dash, letters and digits"},
			&cli.StringFlag{Name: "idempotency-key", Usage: "the run is started once for this key"},
			&cli.BoolFlag{Name: "wait", Usage: "wait for the end of the run, and print its result"},
			tasks.IDFlag()),
		Action: func(c *cli.Context) error {
			t := app.Takes(1, 1, "the name of one definition")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			parameters, err := parametersOf(c)
			if err != nil {
				return err
			}
			task, err := taskOf(c)
			if err != nil {
				return err
			}
			return app.OnNamespaceAs(queue.AccessProduce, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				return start(c, q, words[0], parameters, task)
			})(c)
		},
	}
}

// taskOf returns the task of a run with the fields that flags set.
func taskOf(c *cli.Context) (task queue.Task, err error) {
	for _, name := range []string{"version", "queue", "id", "idempotency-key"} {
		if c.IsSet(name) && c.String(name) == "" {
			return task, app.UsageOf(c, "--%s must not be empty: leave it out", name)
		}
	}
	if c.IsSet("timeout") && app.DurationOf(c, "timeout") == 0 {
		return task, app.UsageOf(c, "--timeout must not be 0: leave it out")
	}
	task = queue.Task{Queue: c.String("queue"), ID: c.String("id"), IdempotencyKey: c.String("idempotency-key"), Timeout: app.DurationOf(c, "timeout")}
	if task.ID != "" {
		if _, err := queue.PartitionOf(task.ID); err != nil {
			return task, app.Usage("%v", err)
		}
	}
	checked := task
	checked.Kind = "flow" // whether there is such a definition is found out later
	if err := checked.Check(1 << 20); err != nil {
		return task, app.UsageOf(c, "%v", err)
	}
	return task, nil
}

// parametersOf returns the parameters that --input and -p give.
func parametersOf(c *cli.Context) (map[string]any, error) {
	parameters := map[string]any{}
	if c.IsSet("input") {
		body, err := app.Body(c, "--input", c.String("input"))
		if err != nil {
			return nil, err
		}
		if jsonx.Checked(body).Decode(&parameters) != nil || parameters == nil {
			return nil, app.UsageOf(c, `--input must be an object with the parameters, such as {"pages":3}`)
		}
	}
	for _, word := range c.StringSlice("p") {
		name, text, both := strings.Cut(word, "=")
		if !both || name == "" {
			return nil, app.UsageOf(c, "-p %q must be NAME=VALUE", refusal.Clip(word))
		}
		if _, twice := parameters[name]; twice {
			return nil, app.UsageOf(c, "the parameter %s is given twice", app.PlainWord(refusal.Clip(name)))
		}
		var value any = text
		if v, err := jsonx.Parse([]byte(text)); err == nil {
			v.Decode(&value) // never fails: it is JSON
		}
		parameters[name] = value
	}
	return parameters, nil
}

func start(c *cli.Context, q *queue.Queue, id string, parameters map[string]any, task queue.Task) error {
	r, err := flow.Start(c.Context, q, id, parameters, c.String("version"), task)
	if errors.Is(err, refusal.ErrNotFound) {
		if definitions, failed := flow.List(c.Context, q); failed == nil {
			err = cmp.Or(known(definitions, id, c.String("version")), err)
		}
	}
	if err != nil {
		return failure(tasks.Unsure(err, r.ID))
	}
	if c.Bool("wait") {
		return tasks.Await(c, q, r.ID)
	}
	if !app.InJSON(c) {
		return app.WriteText(c, r.ID+"\n")
	}
	return app.PrintLine(c, lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New})
}
