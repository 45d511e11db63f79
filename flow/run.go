package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// kindOf returns the kind of the runs of a flow.
func kindOf(id string) string { return "flow." + id }

// partOf returns the kind of a part of a run: of a DAG or a loop within it, which is a run of its own.
func partOf(id, template string) string { return kindOf(id) + "/" + template }

// flowOf returns the flow and the template of a kind. The template is "" for a whole run.
func flowOf(kind string) (id, template string) {
	id, template, _ = strings.Cut(strings.TrimPrefix(kind, "flow."), "/")
	return id, template
}

// The kinds of the tasks that come with flows. They are no flows: those begin with "flow.".
const (
	kindWait  = "flow/wait" // a promise
	kindSleep = "flow/sleep"
	kindHTTP  = "flow/http_request"
)

// input is the payload of a run.
type input struct {
	Parameters map[string]any `json:"parameters,omitempty"`
	Version    string         `json:"version,omitempty"` // the newest if it is left out
}

// output is the result of a run.
type output struct {
	Outputs outputs `json:"outputs"`
}

type outputs struct {
	Parameters map[string]any `json:"parameters"`
}

// often is after how many waits a run makes a checkpoint. Each wake reads what has happened since the last one.
const often = 20

// run is one run of the handler of an agent that follows a definition.
type run struct {
	*agentwait.Agent
	of      string // id of the definition
	part    string // the template, "" for a whole run
	version string
	plan    *plan.Definition
	machine *machine.Machine
}

// remembered is the state of a checkpoint.
type remembered struct {
	Version string          `json:"version"`
	Machine json.RawMessage `json:"machine"`
}

// follow runs a run until it waits or has ended.
func (d *definitions) follow(a *agentwait.Agent, in input) (*output, error) {
	r := &run{Agent: a}
	r.of, r.part = flowOf(a.Info().Kind)
	steps, err := r.begin(d, in)
	for waits := 0; err == nil; waits++ {
		if err := r.do(steps); err != nil || steps.End != nil {
			return finish(steps.End, err)
		}
		if waits%often == often-1 {
			if err := r.checkpoint(); err != nil {
				return nil, err
			}
		}
		steps, err = r.wait()
	}
	return nil, err
}

// begin restores the machine, or makes one.
func (r *run) begin(d *definitions, in input) (steps machine.Steps, err error) {
	var was remembered
	again, err := r.Restore(&was)
	if err != nil {
		return steps, err
	}
	if again {
		if r.plan, err = d.read(r, r.of, was.Version); err != nil {
			return steps, err
		}
		r.version = was.Version
		r.machine, err = machine.Restore(r.plan, was.Machine)
		return steps, err
	}
	// The version is fixed at the first claim: a replay gets the same.
	if r.version, err = agentwait.Step(r.Agent, "version", func(context.Context) (string, error) { return d.version(r, r.of, in.Version) }); err != nil {
		return steps, err
	}
	if r.plan, err = d.read(r, r.of, r.version); err != nil {
		return steps, err
	}
	if r.machine, err = machine.New(r.plan, cmp.Or(r.part, r.plan.Entry), in.Parameters); err != nil {
		return steps, worker.Discard(err)
	}
	if err := r.Collect(); err != nil {
		return steps, err
	}
	return r.machine.Begin(r.Now()), nil
}

// do creates and cancels children.
func (r *run) do(s machine.Steps) error {
	if s.End != nil {
		return nil // the children end with the run
	}
	for i := range s.Create {
		if err := r.create(&s.Create[i]); err != nil {
			return err
		}
	}
	if len(s.Cancel) == 0 {
		return nil
	}
	var futures []agentwait.Awaitable
	for _, name := range s.Cancel {
		futures = append(futures, agentwait.Child[[]byte](r.Agent, name))
	}
	_, err := agentwait.CancelAll(r.Agent, "No longer needed", futures...)
	return err
}

// wait waits for the next ends, and returns what follows from them.
func (r *run) wait() (steps machine.Steps, err error) {
	from, until := r.machine.Limit()
	wait := agentwait.Wait{Reason: "Waiting for the next node to end"}
	if !until.IsZero() {
		wait.From, wait.Limit = from, until.Sub(from)
	}
	ends, err := agentwait.NextEnds(r.With(wait))
	var late *agentwait.WaitTimeoutError
	if errors.As(err, &late) {
		return r.machine.Passed(), nil
	}
	if err != nil {
		return steps, err
	}
	for _, record := range ends {
		for _, until := r.machine.Limit(); !until.IsZero() && record.CompletedAt.After(until); _, until = r.machine.Limit() {
			steps = join(steps, r.machine.Passed())
		}
		steps = join(steps, r.machine.Ended(record.ID[len(r.ID())+1:], endOf(record)))
	}
	return steps, nil
}

func join(a, b machine.Steps) machine.Steps {
	a.Create, a.Cancel = append(a.Create, b.Create...), append(a.Cancel, b.Cancel...)
	if a.End == nil {
		a.End = b.End
	}
	return a
}

func (r *run) checkpoint() error {
	state, err := r.machine.State()
	if err != nil {
		return worker.Discard(err)
	}
	return r.Checkpoint(remembered{r.version, state})
}

// finish returns the result of a run, or the error with which it ends.
func finish(e *machine.End, err error) (*output, error) {
	if err != nil || e == nil {
		return nil, err
	}
	failed := errors.New(e.Msg)
	switch e.Phase {
	case machine.Succeeded:
		return &output{outputs{e.Outputs}}, nil
	case machine.Failed:
		return nil, worker.Discard(failed)
	}
	return nil, worker.Fail(e.Code, failed)
}

// endOf returns how a child has ended.
func endOf(r *queue.Record) machine.End {
	e := machine.End{Phase: machine.Phase(r.Phase()), Code: r.Code, Msg: r.Error, At: r.CompletedAt}
	if r.Status != queue.Completed || json.Unmarshal(r.Result, &e.Result) != nil {
		return e
	}
	object, _ := e.Result.(map[string]any)
	e.Outputs = object
	if inner, ok := object["outputs"].(map[string]any); ok {
		if parameters, ok := inner["parameters"].(map[string]any); ok {
			e.Outputs = parameters
		}
	}
	return e
}

// spanOf returns a limit as a task has it: 0 leaves it to the kind.
func spanOf(s plan.Span) time.Duration {
	if s.Set && s.Time == 0 {
		return queue.None
	}
	return s.Time
}

var errOption = errors.New("an option is missing or of the wrong type")

// create schedules the task of a child.
func (r *run) create(c *machine.Child) error {
	t := queue.Task{ID: c.Name, Timeout: spanOf(c.Times.Total), Deadline: c.Deadline}
	if !c.Deadline.IsZero() {
		t.Timeout = 0
	}
	payload := any(c.Inputs)
	switch a := c.Action; {
	case c.Template != "":
		t.Kind, t.Queue, payload = partOf(r.of, c.Template), r.Info().Queue, input{c.Inputs, r.version}
	case a.Type == plan.WorkflowCall:
		t.Kind, payload = kindOf(a.Flow), input{Parameters: c.Inputs, Version: a.Version}
	case a.Type == plan.Wait, a.Type == plan.Echo:
		t.Kind, t.Promise = kindWait, true
	case a.Type == plan.Sleep:
		d, err := durationOf(c.Options["duration"])
		if err != nil {
			return worker.Discard(fmt.Errorf("node %s: %w", c.Node, err))
		}
		t.Kind, t.Timer, t.Delay = kindSleep, true, d
	default:
		r.leaf(&t, c)
		if a.Type == plan.HTTPRequest {
			t.Kind, payload = kindHTTP, c.Options
		}
	}
	agentwait.Schedule[json.RawMessage](r.Agent, payload, t)
	return nil
}

// leaf sets what a task of the user's workers has beside its payload.
func (r *run) leaf(t *queue.Task, c *machine.Child) {
	t.Kind, t.Queue, t.Priority = c.Action.Type, c.Action.Queue, c.Action.Priority
	t.AttemptTimeout, t.QueueTimeout = spanOf(c.Times.Attempt), spanOf(c.Times.Line)
	t.MaxRetries = c.Retry.Limit
	retries := c.Times.Retries
	if !c.Times.Said {
		retries = c.Retry.Limit > 0
	}
	if retries && t.AttemptTimeout != 0 {
		t.OnTimeout = queue.OnTimeoutRetry
	}
}

// durationOf reads the duration of a sleep: a text such as 10s, or a number of ms.
func durationOf(v any) (time.Duration, error) {
	switch v := v.(type) {
	case string:
		return parseDuration(v)
	case int:
		return time.Duration(v) * time.Millisecond, nil
	case float64:
		return time.Duration(v) * time.Millisecond, nil
	}
	return 0, fmt.Errorf("%w: the duration of a sleep must be a text such as 10s, or a number of ms", errOption)
}
