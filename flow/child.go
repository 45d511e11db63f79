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
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// create schedules the task of a child. If the child has ended already, as only a signal can, create
// returns the next steps.
func (r *run) create(c *machine.Child) (steps machine.Steps, err error) {
	if c.Signal != "" {
		return r.signal(c)
	}
	t := queue.Task{ID: c.Name, Timeout: spanOf(c.Times.Total), Node: r.node(c)}
	if !c.Begins.IsZero() {
		setRetryTimes(&t, c, r.Now())
	}
	payload := any(payloadOf(c))
	switch a := c.Action; {
	case c.Template != "":
		t.Kind, t.Queue, payload = partOf(r.flow, c.Template), r.Info().Queue, input{c.Inputs, r.version, r.took}
	case a.Type == plan.WorkflowCall:
		t.Kind, t.Queue, t.Priority, payload = kindOf(a.Flow), a.Queue, a.Priority, input{Parameters: c.Inputs, Version: a.Version}
		if t, err = r.withVersion(t, a); err != nil {
			return steps, err
		}
	case a.Type == plan.Wait, a.Type == plan.Echo:
		t.Kind, t.Promise, t.Timeout = kindWait, true, spanOf(totalTime(c))
	case a.Type == plan.Sleep:
		limit := totalTime(c)
		t.Kind, t.Timer, t.Timeout = kindSleep, true, spanOf(limit)
		t.Delay, _ = durationOf(c.Options["duration"]) // without error, because checker has read it
		if limit.Time > 0 && t.Delay > limit.Time {    // the timer would never fire, so a promise takes its place
			t.Timer, t.Promise, t.Delay = false, true, 0
		}
	case a.Type == plan.HTTPRequest:
		setLeaf(&t, c, kindHTTP)
	default:
		setLeaf(&t, c, a.Type)
	}
	if t.Promise {
		t.Priority = 0 // no worker claims it
	}
	agentwait.Schedule[json.RawMessage](r.Agent, payload, t)
	return steps, nil
}

// payloadOf returns the payload of a leaf's task: its inputs, or the options of a request.
func payloadOf(c *machine.Child) map[string]any {
	if c.Action != nil && c.Action.Type == plan.HTTPRequest {
		return c.Options
	}
	return c.Inputs
}

// node returns the identity of a child's node, for events and records.
func (r *run) node(c *machine.Child) queue.Node {
	return queue.Node{Definition: r.flow, Version: r.version, Name: c.Node}
}

// setRetryTimes sets the times of a further attempt that is created now. If the worker was late, the
// pause is over, and less time is left.
func setRetryTimes(t *queue.Task, c *machine.Child, now time.Time) {
	start := now
	if c.Begins.After(now) {
		start, t.StartAt = c.Begins, c.Begins
	}
	if t.Timeout > 0 {
		t.Timeout += start.Sub(now)
	}
	remaining := c.Deadline.Sub(now)
	switch {
	case c.Deadline.IsZero() || t.Timeout > 0 && t.Timeout < remaining:
	case remaining > near:
		t.Timeout, t.Deadline = 0, c.Deadline
	case remaining > 0:
		t.Timeout = remaining
	default: // a promise that times out at once
		t.Timeout, t.Promise = time.Millisecond, true
	}
}

// near is the time before a deadline within which a task gets a timeout in place of the deadline. A
// deadline that passes before the task is created would be refused.
const near = time.Second

// readTimes reads the times that tasks of the kinds with adaptive limits took. A run does that once,
// so that its parts and later rounds have the same limits.
func (d *definitions) readTimes(ctx context.Context, p *plan.Definition) (map[string]int64, error) {
	suggested, err := inspect.Suggest(ctx, d.q, p.AdaptiveKinds()...)
	if err != nil {
		return nil, err
	}
	took := map[string]int64{}
	for _, s := range suggested {
		if s.Count >= minSamples {
			took[s.Kind] = s.P995.Milliseconds() // 0 if the time is above all bounds
		}
	}
	return took, nil
}

// minSamples is the number of ended tasks of a kind from which an adaptive limit uses their times.
const minSamples = 100

// checker returns a function that refuses children whose tasks cannot be created. Their nodes end
// with its error.
func checker(q *queue.Queue, run string) func(*machine.Child) error {
	return func(c *machine.Child) error {
		if _, err := queue.PartitionOf(run + "." + c.Name); err != nil {
			return fmt.Errorf("its task cannot be created: %w", err)
		}
		payload, err := json.Marshal(payloadOf(c))
		switch {
		case err != nil:
			return fmt.Errorf("its inputs cannot be written as JSON: %w", jsonx.Plain(err))
		case len(payload) > q.MaxBytes()-reserve:
			return fmt.Errorf("its inputs have %d bytes, the limit is %d", len(payload), q.MaxBytes()-reserve)
		case c.Action != nil && c.Action.Type == plan.Sleep:
			_, err = durationOf(c.Options["duration"])
		}
		return err
	}
}

// withVersion sets the timeout and the policy of a call of a version. Without it the task would get
// the defaults of its kind, which belong to the newest version. If the version cannot be read,
// withVersion returns the task unchanged, because the called run then fails and names the cause.
func (r *run) withVersion(t queue.Task, a *plan.Action) (queue.Task, error) {
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
	return withTimes(t, d), nil
}

// totalTime returns the limit of a child that no worker runs: the shorter of its limits, because it
// has no attempts.
func totalTime(c *machine.Child) plan.Span { return c.Times.Total.Shorter(c.Times.Attempt) }

// spanOf converts a limit to a field of a task. 0 means the default of the kind.
func spanOf(s plan.Span) time.Duration {
	if s.Set && s.Time == 0 {
		return queue.None
	}
	return s.Time
}

// setLeaf sets the fields of a worker's task except the payload. Fields that the definition does not
// set keep the defaults of the kind.
func setLeaf(t *queue.Task, c *machine.Child, kind string) {
	t.Kind, t.Queue, t.Priority = kind, c.Action.Queue, c.Action.Priority
	t.AttemptTimeout, t.QueueTimeout = spanOf(c.Times.Attempt), spanOf(c.Times.Line)
	if c.Times.Said && !c.Times.Retries && c.Retry.Expression == "" {
		t.OnTimeout = queue.OnTimeoutFail // even if the kind has retries
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
	case c.Times.Retries || !c.Times.Said: // a retry without a condition is for errors and timeouts
		t.OnTimeout = queue.OnTimeoutRetry
	}
}

// signal schedules the wait for a signal. No wait would return a signal that was sent before. So the
// run looks for it once, in a step, and a replay gets the same result.
func (r *run) signal(c *machine.Child) (steps machine.Steps, err error) {
	f := agentwait.TimedSignal[[]byte](r.Agent, c.Signal, c.Nth, queue.Task{Timeout: spanOf(totalTime(c)), Node: r.node(c)})
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

// endOf converts the record of an ended child to an end for the machine.
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
		e.Result = strings.ToValidUTF8(string(r.Result), "\uFFFD") // only the first 64 KiB are checked where a result comes in, and older programs check nothing
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
		e.Result = nil // Outputs holds it already
	}
	return e
}
