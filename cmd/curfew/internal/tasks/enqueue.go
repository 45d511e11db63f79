package tasks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const enqueueHelp = `The payload is JSON, - for stdin, or @FILE. It prints the id of the task.

    curfew enqueue render '{"page":"index"}' --timeout 30s
    curfew enqueue mail @mail.json --queue mail --retries 3 --backoff exponential --backoff-delay 1s --backoff-max 10m
    curfew enqueue render '{"page":"index"}' --timeout 30s --wait
    curfew enqueue --batch tasks.jsonl

A task without --timeout or --deadline can wait without limit, unless its kind has a default. With --id or
--idempotency-key the command can be repeated: the task is stored once.

--wait prints the result. The exit code is 124 if the task timed out, and 1 if it failed or was cancelled. If it is
interrupted, the task goes on.

--batch reads a JSON object in each line, with the names of docs/reference/protocol.md, "Tasks in JSON":

    {"kind":"render","payload":{"page":"index"},"timeout":"30s","id":"0-PAGE1"}

All lines are checked first: if one is bad, nothing is enqueued, unless --skip-bad is given. It prints the ids in the order of
the lines.`

func Enqueue() *cli.Command {
	return &cli.Command{
		Name:        "enqueue",
		Usage:       "store a task, or the tasks of a file, and print the id of each",
		ArgsUsage:   "KIND [JSON|-|@FILE]",
		Description: enqueueHelp,
		Flags: slices.Concat(app.NamespaceFlags(), fieldFlags(), []cli.Flag{
			&cli.StringSliceFlag{Name: "header", Usage: "a header of the task, NAME=VALUE; can be given again"},
			&cli.BoolFlag{Name: "promise", Usage: "no worker runs the task: curfew resolve ends it"},
			&cli.BoolFlag{Name: "wait", Usage: "wait for the end of the task, and print its result"},
			&cli.StringFlag{Name: "batch", Usage: "enqueue the tasks of this file, a JSON object in each line; - for stdin"},
			&cli.BoolFlag{Name: "skip-bad", Usage: "with --batch: report bad lines, and enqueue the others"},
			app.RawFlag(), IDFlag()}),
		Action: func(c *cli.Context) error {
			if c.IsSet("batch") {
				return enqueueBatch(c)
			}
			words, err := app.Arguments(c, app.Takes(1, 2, "the kind of the task, and its payload"))
			if err != nil {
				return err
			}
			if c.Bool("skip-bad") {
				return app.UsageOf(c, "--skip-bad needs --batch")
			}
			task, err := taskOf(c, words)
			if err != nil {
				return err
			}
			return app.OnNamespaceAs(queue.AccessProduce, app.Takes(1, 2, ""), func(c *cli.Context, q *queue.Queue, _ []string) error {
				return enqueueOne(c, q, task)
			})(c)
		},
	}
}

// withFlag are the fields that have a flag. The others can be given by --batch.
var withFlag = strings.Fields(`id queue priority timeout deadline_at delay available_at queue_timeout attempt_timeout
	max_retries backoff backoff_delay backoff_max jitter result_type retention idempotency_key`)

func fieldFlags() (flags []cli.Flag) {
	for _, name := range withFlag {
		f, _ := field.ByName(name)
		flag := app.FieldFlag(f, f.FlagName())
		switch flag := flag.(type) {
		case *cli.StringFlag:
			if name == "queue" {
				flag.Value = "default"
			}
		case *cli.IntFlag:
			if name == "max_retries" {
				flag.DefaultText = "that of the kind"
			}
		case *cli.GenericFlag:
			if name == "backoff_delay" {
				flag.DefaultText = "that of the kind, otherwise " + flag.DefaultText
			}
		}
		flags = append(flags, flag)
	}
	return flags
}

// orNone returns what can be written instead of 0.
func orNone(f *field.Field) string {
	if f.By == field.Kind {
		return ", or write none, so that no default applies"
	}
	return ""
}

// IDFlag returns the flag for the output format of commands that enqueue.
func IDFlag() cli.Flag {
	f := app.ChoiceFlag("output", "id", "id, json: one value, or jsonl: a line of JSON for each task", "id", "json", "jsonl")
	f.Aliases = []string{"o"}
	return f
}

// taskOf returns the task of the flags and arguments. It makes all checks that need no call to Redis.
func taskOf(c *cli.Context, words []string) (task queue.Task, err error) {
	task = queue.Task{Kind: words[0], Promise: c.Bool("promise")}
	for _, name := range withFlag {
		f, _ := field.ByName(name)
		flag := f.FlagName()
		if err := app.SetField(c, f, flag, &task); err != nil {
			return task, err
		}
		switch empty := c.IsSet(flag) && f.In(&task).IsZero(); {
		case empty && f.Type == field.Text:
			return task, app.UsageOf(c, "--%s must not be empty: leave it out", flag)
		case empty && f.Type == field.Span && name != "delay" && name != "backoff_max":
			return task, app.UsageOf(c, "--%s must not be 0: leave it out%s", flag, orNone(f))
		}
	}
	if task.Backoff.Delay == 0 && (c.IsSet("backoff") || c.IsSet("backoff-max") || c.IsSet("jitter")) {
		return task, app.UsageOf(c, "a back-off needs --backoff-delay, the time before the first retry")
	}
	if c.IsSet("retries") && task.MaxRetries == 0 {
		task.MaxRetries = queue.NoRetries
	}
	for _, header := range c.StringSlice("header") {
		name, value, both := strings.Cut(header, "=")
		if !both || name == "" {
			return task, app.UsageOf(c, "--header %q must be NAME=VALUE", refusal.Clip(header))
		}
		if task.Headers == nil {
			task.Headers = map[string]string{}
		}
		task.Headers[name] = value
	}
	if task.ID != "" {
		if _, err := queue.PartitionOf(task.ID); err != nil {
			return task, app.Usage("%v", err)
		}
	}
	if len(words) > 1 {
		if task.Payload, err = app.Body(c, "the payload", words[1]); err != nil {
			return task, err
		}
	}
	if err := task.Check(1 << 20); err != nil {
		return task, app.UsageOf(c, "%v", err)
	}
	return task, nil
}

func enqueueOne(c *cli.Context, q *queue.Queue, task queue.Task) error {
	r, err := q.Enqueue(c.Context, task)
	switch {
	case errors.Is(err, refusal.ErrConflict), errors.Is(err, refusal.ErrOwnerEnded), errors.Is(err, refusal.ErrQueueFull):
		return cli.Exit(err.Error(), app.ExitRefused)
	case errors.Is(err, refusal.ErrNotFound):
		return cli.Exit(err.Error(), app.ExitNotFound)
	case err != nil:
		return Unsure(err, r.ID)
	}
	if c.Bool("wait") {
		return Await(c, q, r.ID)
	}
	if c.String("output") == "id" {
		_, err = fmt.Fprintln(c.App.Writer, r.ID)
		return err
	}
	return app.PrintLine(c, lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New})
}

// Unsure adds to the error of an enqueue how to find out whether it had its effect, if that is unknown.
func Unsure(err error, id string) error {
	if errors.Is(err, refusal.ErrUnknown) && id != "" {
		return fmt.Errorf("%w; `curfew get %s` says whether it was stored", err, id)
	}
	return err
}

// Await waits for the end of a task, and prints its result.
func Await(c *cli.Context, q *queue.Queue, id string) error {
	app.Note(c, "enqueued %s", id)
	result, err := q.Result(c.Context, id)
	if _, ended := endOf(id, result, err); !ended && c.Context.Err() != nil {
		return app.Interrupted("the task goes on: `curfew wait %s` waits for it", id)
	}
	if c.String("output") != "id" {
		if line, ok := endOf(id, result, err); ok {
			if err := app.PrintLine(c, line); err != nil {
				return err
			}
		}
	} else if err == nil {
		if _, err := c.App.Writer.Write(append(result, '\n')); err != nil {
			return err
		}
	}
	return endError(err)
}

// endError gives the error of a task's end its exit code.
func endError(err error) error {
	var late *queue.TaskTimedOutError
	switch {
	case errors.As(err, &late):
		return cli.Exit(plainText(err.Error()), app.ExitTimedOut)
	case errors.As(err, new(*queue.TaskFailedError)), errors.Is(err, refusal.ErrCancelled):
		return cli.Exit(plainText(err.Error()), app.ExitFailed)
	case errors.Is(err, refusal.ErrNotFound):
		return cli.Exit(noTask(err), app.ExitNotFound)
	}
	return err
}

func noTask(err error) string {
	return err.Error() + ": " + app.WhyNoTask
}

// endOf converts the result or error of Queue.Result to the end of the task; ok is false for any
// other error.
func endOf(id string, result []byte, err error) (e lines.End, ok bool) {
	var late *queue.TaskTimedOutError
	var failed *queue.TaskFailedError
	switch {
	case err == nil:
		return lines.End{ID: id, Status: queue.Completed, Result: result}, true
	case errors.As(err, &late):
		return lines.End{ID: id, Status: queue.Failed, Error: "Task exceeded deadline", Reason: queue.ReasonTimeout, TimeoutType: late.Type}, true
	case errors.As(err, &failed):
		return lines.End{ID: id, Status: queue.Failed, Error: failed.Err.Error(), Reason: failed.Reason, Code: failed.Code}, true
	case errors.Is(err, refusal.ErrCancelled):
		_, reason, _ := strings.Cut(err.Error(), refusal.ErrCancelled.Error()+": ")
		return lines.End{ID: id, Status: queue.Cancelled, Error: reason}, true
	}
	return lines.End{}, false
}
