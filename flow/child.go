package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/internal/jsonerr"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// create schedules the task of a child. If the child has ended already, which only a signal can, it returns what follows.
func (r *run) create(c *machine.Child) (steps machine.Steps, err error) {
	if c.Signal != "" {
		return r.signal(c)
	}
	t := queue.Task{ID: c.Name, Timeout: spanOf(c.Times.Total), Node: r.node(c)}
	if !c.Begins.IsZero() {
		further(&t, c, r.Now())
	}
	payload := any(payloadOf(c))
	switch a := c.Action; {
	case c.Template != "":
		t.Kind, t.Queue, payload = partOf(r.of, c.Template), r.Info().Queue, input{c.Inputs, r.version, r.took}
	case a.Type == plan.WorkflowCall:
		t.Kind, t.Queue, t.Priority, payload = kindOf(a.Flow), a.Queue, a.Priority, input{Parameters: c.Inputs, Version: a.Version}
		if t, err = r.pinned(t, a); err != nil {
			return steps, err
		}
	case a.Type == plan.Wait, a.Type == plan.Echo:
		t.Kind, t.Promise, t.Timeout = kindWait, true, spanOf(oneClock(c))
	case a.Type == plan.Sleep:
		limit := oneClock(c)
		t.Kind, t.Timer, t.Timeout = kindSleep, true, spanOf(limit)
		t.Delay, _ = durationOf(c.Options["duration"]) // checked
		if limit.Time > 0 && t.Delay > limit.Time {    // it never fires, which a timer cannot do
			t.Timer, t.Promise, t.Delay = false, true, 0
		}
	case a.Type == plan.HTTPRequest:
		leaf(&t, c, kindHTTP)
	default:
		leaf(&t, c, a.Type)
	}
	if t.Promise {
		t.Priority = 0 // no worker takes it
	}
	agentwait.Schedule[json.RawMessage](r.Agent, payload, t)
	return steps, nil
}

// payloadOf returns the payload of the task of a leaf: its inputs, or for a request its options.
func payloadOf(c *machine.Child) map[string]any {
	if c.Action != nil && c.Action.Type == plan.HTTPRequest {
		return c.Options
	}
	return c.Inputs
}

// node says in events and records which node a child is.
func (r *run) node(c *machine.Child) queue.Node {
	return queue.Node{Definition: r.of, Version: r.version, Name: c.Node}
}

// further sets the times of a further attempt that is created now. A worker can be late: then the pause is over, and less time is left.
func further(t *queue.Task, c *machine.Child, now time.Time) {
	begins := now
	if c.Begins.After(now) {
		begins, t.StartAt = c.Begins, c.Begins
	}
	if t.Timeout > 0 {
		t.Timeout += begins.Sub(now)
	}
	left := c.Deadline.Sub(now)
	switch {
	case c.Deadline.IsZero() || t.Timeout > 0 && t.Timeout < left:
	case left > near:
		t.Timeout, t.Deadline = 0, c.Deadline
	case left > 0:
		t.Timeout = left
	default: // nothing runs it, and it times out at once
		t.Timeout, t.Promise = time.Millisecond, true
	}
}

// near is when a deadline is so near that it can pass before the task is created, which would be refused. Then the task gets the time that
// is left.
const near = time.Second

// learn reads how long tasks of the kinds with adaptive times took. A run does that once, so that its parts and its later rounds have the
// same limits.
func (d *definitions) learn(ctx context.Context, p *plan.Definition) (map[string]int64, error) {
	suggested, err := inspect.Suggest(ctx, d.q, p.AdaptiveKinds()...)
	if err != nil {
		return nil, err
	}
	took := map[string]int64{}
	for _, s := range suggested {
		if s.Count >= enough {
			took[s.Kind] = s.P995.Milliseconds() // 0 if it is above all bounds
		}
	}
	return took, nil
}

// enough is how many tasks of a kind must have ended before an adaptive time uses their figures.
const enough = 100

// checker returns a function that refuses children whose tasks cannot be created: the node ends with the error.
func checker(q *queue.Queue, run string) func(*machine.Child) error {
	return func(c *machine.Child) error {
		if _, err := queue.PartitionOf(run + "." + c.Name); err != nil {
			return fmt.Errorf("its task cannot be created: %w", err)
		}
		payload, err := json.Marshal(payloadOf(c))
		switch {
		case err != nil:
			return fmt.Errorf("its inputs cannot be written as JSON: %w", jsonerr.Plain(err))
		case len(payload) > q.MaxBytes()-reserve:
			return fmt.Errorf("its inputs have %d bytes, the limit is %d", len(payload), q.MaxBytes()-reserve)
		case c.Action != nil && c.Action.Type == plan.Sleep:
			_, err = durationOf(c.Options["duration"])
		}
		return err
	}
}

// pinned sets the timeout and the policy of a call of a version to those of that version, since the defaults of the kind are those of the
// newest one. If the version cannot be read, the run that is called fails and names the cause.
func (r *run) pinned(t queue.Task, a *plan.Action) (queue.Task, error) {
	if a.Version == "" {
		return t, nil
	}
	var unreadable *unreadableError
	d, err := r.all.read(r, a.Flow, a.Version)
	switch {
	case errors.Is(err, refusal.ErrNotFound), errors.As(err, &unreadable):
		return t, nil
	case err != nil:
		return t, err
	}
	return timed(t, d), nil
}

// oneClock returns the time of what has no attempts, since no worker runs it: the shorter one of its limits.
func oneClock(c *machine.Child) plan.Span { return c.Times.Total.Shorter(c.Times.Attempt) }

// spanOf returns a limit as a task has it: 0 leaves it to the kind.
func spanOf(s plan.Span) time.Duration {
	if s.Set && s.Time == 0 {
		return queue.None
	}
	return s.Time
}

// leaf sets what a task of a worker has beside its payload. What the definition does not say is left to the defaults of the kind.
func leaf(t *queue.Task, c *machine.Child, kind string) {
	t.Kind, t.Queue, t.Priority = kind, c.Action.Queue, c.Action.Priority
	t.AttemptTimeout, t.QueueTimeout = spanOf(c.Times.Attempt), spanOf(c.Times.Line)
	if c.Times.Said && !c.Times.Retries && c.Retry.Expression == "" {
		t.OnTimeout = queue.OnTimeoutFail // also if the kind has retries
	}
	if !c.Retry.Set {
		return
	}
	if t.MaxRetries = c.Retry.Limit; t.MaxRetries == 0 {
		t.MaxRetries = queue.NoRetries
		return
	}
	t.Backoff = queue.Backoff{Delay: c.Retry.Backoff.Delay, Max: c.Retry.Backoff.Max, Exponential: c.Retry.Backoff.Exponential}
	switch {
	case c.Retry.Expression != "":
		t.Retry = expr.RenameTask(c.Node, kind, c.Retry.Expression)
	case c.Times.Retries || !c.Times.Said: // a retry without more is for errors and timeouts
		t.OnTimeout = queue.OnTimeoutRetry
	}
}

// signal schedules the wait for a signal. A signal that was sent before is no news, so that no wait would return it: the run
// looks for it, once, and a replay sees what it saw.
func (r *run) signal(c *machine.Child) (steps machine.Steps, err error) {
	f := agentwait.TimedSignal[[]byte](r.Agent, c.Signal, c.Nth, queue.Task{Timeout: spanOf(oneClock(c)), Node: r.node(c)})
	if err := r.Start(); err != nil {
		return steps, err
	}
	get := func(ctx context.Context) (*queue.Record, error) { return r.all.q.Get(ctx, f.ID()) }
	sent, err := agentwait.Step(r.Agent, c.Name, func(ctx context.Context) (bool, error) {
		record, err := get(ctx)
		return err == nil && record.Status.Ended(), err
	})
	if err != nil || !sent {
		return steps, err
	}
	record, err := get(r)
	if err != nil {
		return steps, err
	}
	return r.machine.Ended(c.Name, endOf(record)), nil
}

// durationOf reads the duration of a sleep.
func durationOf(v any) (time.Duration, error) { return plan.SleepTime(v) }

// endOf returns how a child has ended.
func endOf(r *queue.Record) machine.End {
	e := machine.End{Phase: machine.Phase(r.Phase()), Code: r.Code, Msg: strings.ToValidUTF8(r.Error, "\uFFFD"), At: r.CompletedAt, Began: r.CreatedAt, Until: r.Deadline}
	var failed *queue.TaskFailedError
	switch _, err := r.Outcome(); {
	case e.Phase == machine.Error && e.Code == codeTimeout:
		e.Phase, e.Code = machine.Timeout, 0
	case r.TimedOut && errors.As(err, &failed):
		e.Phase = machine.Failed // a run whose definition says on_timeout: fail
	}
	if r.RetryError != "" {
		e.Msg += "; " + r.RetryError
	}
	if r.Status != queue.Completed || len(r.Result) == 0 {
		return e
	}
	if value.Decode(r.Result, &e.Result, false) != nil {
		e.Result = strings.ToValidUTF8(string(r.Result), "\uFFFD") // a task can yield any text
	}
	object, isObject := e.Result.(map[string]any)
	e.Outputs = object
	if inner, ok := object["outputs"].(map[string]any); ok {
		if parameters, ok := inner["parameters"].(map[string]any); ok {
			e.Outputs = parameters
			return e
		}
	}
	if isObject {
		e.Result = nil // it is the same
	}
	return e
}
