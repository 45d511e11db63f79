package tasks

import (
	"bytes"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func Resolve() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "end a promise, with a result or with an error",
		ArgsUsage: "ID [RESULT|-|@FILE]",
		Description: `A promise is a task that no worker runs. If it has ended otherwise, it is not changed, and the exit code is 5. The same again is
no error. A result that is not of the promise's result_type is refused too, with what is wanted: see curfew get ID.

    curfew resolve 0-1MCC5RM000000001 '{"approved":true}'
    curfew resolve 0-1MCC5RM000000001 --error "rejected by Ada"`,
		Flags: append(app.NamespaceFlags(), &cli.StringFlag{Name: "error", Usage: "the promise fails with this error"}, app.RawFlag(), app.ListFlag()),
		Action: func(c *cli.Context) error {
			t := app.Takes(1, 2, "the id of a promise, and its result")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			var result []byte
			switch {
			case c.IsSet("error") && len(words) == 2:
				return app.UsageOf(c, "a promise has a result or an error: leave out --error, or the result")
			case c.IsSet("error") && c.String("error") == "":
				return app.UsageOf(c, "--error must not be empty")
			case len(words) == 2:
				if result, err = app.Body(c, "the result", words[1]); err != nil {
					return err
				}
			}
			return app.OnNamespaceAs(queue.AccessProduce, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				return resolve(c, q, words[0], result)
			})(c)
		},
	}
}

func resolve(c *cli.Context, q *queue.Queue, id string, result []byte) error {
	if err := checkIDs(q, []string{id}); err != nil {
		return err
	}
	var r queue.Resolution
	var err error
	same := func(r queue.Resolution) bool { return r.Status == queue.Completed && bytes.Equal(r.Result, result) }
	if reason := c.String("error"); reason != "" {
		r, err = q.Reject(c.Context, id, reason)
		same = func(r queue.Resolution) bool { return r.Status == queue.Failed && r.Error == reason }
	} else {
		r, err = q.Resolve(c.Context, id, result)
	}
	return printSettled(c, "resolved", id, r, err, same(r))
}

// printSettled prints the result of settling a promise. same reports whether it had already ended in
// the requested way.
func printSettled(c *cli.Context, verb, id string, r queue.Resolution, err error, same bool) error {
	o := outcome{Outcome: lines.Outcome{ID: id, Status: r.Status, Changed: r.Done, Text: verb}}
	switch {
	case err != nil:
		if o = refused(id, err); o.code == app.ExitFailed || errors.Is(err, refusal.ErrUnknown) {
			return err
		}
	case r.Done:
	case same:
		o.Text = "was " + verb + " before, in the same way"
	case r.Error != "":
		o.Text, o.code = "it was not "+verb+", because it is "+string(r.Status)+" already: "+cell([]byte(r.Error)), app.ExitRefused
	default:
		o.Text, o.code = "it was not "+verb+", because it is "+string(r.Status)+" already, with other content", app.ExitRefused
	}
	return printOutcomes(c, verb, func(yield func(outcome, error) bool) { yield(o, nil) })
}

func Signal() *cli.Command {
	return &cli.Command{
		Name:      "signal",
		Usage:     "send a payload to an agent under a name",
		ArgsUsage: "AGENT NAME [PAYLOAD|-|@FILE]",
		Description: `The first signal of a name counts, whether or not the agent waits for it yet. A second one with another payload changes nothing:
exit code 5.

    curfew signal 0-1MCC5RM000000001 approved '{"by":"ada"}'

An agent can request the same name again. With --call, the same command again does not send that next signal.`,
		Flags: append(app.NamespaceFlags(), callFlag(), app.RawFlag(), app.ListFlag()),
		Action: withCall(func(c *cli.Context) error {
			t := app.Takes(2, 3, "the id of an agent, the name of the signal, and its payload")
			words, err := app.Arguments(c, t)
			if err != nil {
				return err
			}
			if err := queue.CheckSignal(words[1]); err != nil {
				return app.UsageOf(c, "%v", err)
			}
			call := queue.NewCall()
			if c.IsSet("call") {
				call = c.String("call")
			}
			var payload []byte
			if len(words) == 3 {
				if payload, err = app.Body(c, "the payload", words[2]); err != nil {
					return err
				}
			}
			return app.OnNamespaceAs(queue.AccessProduce, t, func(c *cli.Context, q *queue.Queue, _ []string) error {
				if err := checkIDs(q, words[:1]); err != nil {
					return err
				}
				r, err := q.SignalAs(c.Context, call, words[0], words[1], payload)
				return printSettled(c, "sent", words[0], r, err, r.Status == queue.Completed && bytes.Equal(r.Result, payload))
			})(c)
		}),
	}
}
