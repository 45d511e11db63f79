// Package machine executes a plan as a state machine. A Machine gets the ends of children, and
// returns the children to create and the end of the run. It has no clock, calls no server, and
// returns the same steps for the same ends, so that a run can be replayed.
package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/expr/value"
)

// Phase is the kind of an end, in the words of definitions.
type Phase string

// The phases of ends.
const (
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed" // permanently: its handler declared that it can never succeed
	Error     Phase = "Error"
	Timeout   Phase = "Timeout"
	Cancelled Phase = "Cancelled"
)

// End is the end of a child, a node or a whole template.
type End struct {
	Phase   Phase          `json:"phase"`
	Code    int            `json:"code,omitempty"`
	Msg     string         `json:"msg,omitempty"`
	Outputs map[string]any `json:"outputs,omitzero"` // outputs.parameters; an empty object is not nil
	Result  any            `json:"result,omitempty"` // the whole result, if that is no object of parameters
	At      time.Time      `json:"at,omitzero"`
	Began   time.Time      `json:"-"` // when the task of a child was created
	Until   time.Time      `json:"-"` // its deadline, zero if it had none
}

// Child is a task to create.
type Child struct {
	Name     string // unique in the run of the machine
	Node     string
	Action   *plan.Action   // nil for a child with a Template
	Template string         // followed by a machine of its own
	Options  map[string]any // of the action, evaluated
	Inputs   map[string]any
	Times    plan.Times
	Retry    plan.Retry // of a task; this machine retries a child with a Template itself
	Signal   string     // name of the signal that the child waits for
	Nth      int        // number of the signal among those of this name
	Begins   time.Time  // earliest start of a retry by this machine
	Deadline time.Time  // deadline of all attempts of such a call
}

// Steps is the work to do next. It cancels nothing: siblings that a meeting no longer awaits
// continue, and everything under way ends with the run.
type Steps struct {
	Create []Child
	End    *End // end of the template, nil while it continues
}

// Add appends further steps. The first end counts.
func (s *Steps) Add(next Steps) {
	s.Create = append(s.Create, next.Create...)
	if s.End == nil {
		s.End = next.End
	}
}

// body is the part of a machine that depends on the kind of its template.
type body interface {
	begin(m *Machine)
	// ended is called when a call has ended without a retry. key is the argument of start.
	ended(m *Machine, key string, e End)
	// limit returns the start and the end of the earliest limit of a wait, or zero.
	limit() (from, until time.Time)
	// passed is called when that limit has passed.
	passed(m *Machine)
}

// Machine follows one template.
type Machine struct {
	plan  *plan.Definition
	of    *plan.Template
	body  body
	state *state
	at    time.Time // of the end that is being handled
	due   []due     // ends of calls that take no time
	held  int       // bytes of the values in due
	steps Steps
	watch Watch
	check func(*Child) error
	took  map[string]int64
	until context.Context // stops a long step; can be nil
}

// due is the end of a call that the machine has performed itself, and which its body has not handled
// yet.
type due struct {
	key  string
	end  End
	size int
}

// Watch is called for each call that begins, with a nil end, and for each call that has ended
// without a retry. child is the newest child of the call, "" if it has none. key distinguishes the
// calls of a node.
type Watch func(node, key, child string, e *End)

// state is the stored state of a Machine.
type state struct {
	Template string           `json:"template"`
	Inputs   map[string]any   `json:"-"`               // not stored, because the payload of the run has them
	Calls    map[string]*call `json:"calls,omitempty"` // calls under way, by the name of their child
	Over     bool             `json:"over,omitempty"`
	Made     int              `json:"made,omitempty"`    // calls so far
	Yielded  int              `json:"yielded,omitempty"` // bytes of the results of calls that take no time, since the state was weighed
	Signals  map[string]int   `json:"signals,omitempty"` // number of signals of each name that were awaited so far
	DAG      *dag             `json:"dag,omitempty"`
	Loop     *loop            `json:"loop,omitempty"`
	Graph    *graph           `json:"graph,omitempty"`
	Single   *single          `json:"single,omitempty"`
}

// call is a call that is under way.
type call struct {
	Key   string         `json:"key"` // for the body
	Node  string         `json:"node"`
	Tries int            `json:"tries"`
	First time.Time      `json:"first"`           // start of the first attempt
	Total time.Duration  `json:"total,omitempty"` // the adaptive limit of all attempts, as of the first attempt
	In    map[string]any `json:"in,omitzero"`

	of *plan.Call
}

// New returns a machine for a template of a plan.
func New(d *plan.Definition, template string, inputs map[string]any) (*Machine, error) {
	return newMachine(d, &state{Template: template, Inputs: inputs, Calls: map[string]*call{}})
}

// Restore returns a machine with the state from State, and the inputs from New.
func Restore(d *plan.Definition, inputs map[string]any, text []byte) (*Machine, error) {
	s := &state{}
	if err := value.Decode(text, s, false); err != nil {
		return nil, fmt.Errorf("the state of the run cannot be read: %w", err)
	}
	s.Inputs = inputs
	if x := d.Templates[s.Template]; x != nil && !s.Over { // Begin has set the defaults of missing inputs
		var err error
		if s.Inputs, err = withDefaults(x, inputs); err != nil {
			return nil, err
		}
	}
	if s.Calls == nil {
		s.Calls = map[string]*call{}
	}
	return newMachine(d, s)
}

func newMachine(d *plan.Definition, s *state) (*Machine, error) {
	x := d.Templates[s.Template]
	if x == nil {
		return nil, fmt.Errorf("the definition has no template %q", s.Template)
	}
	m := &Machine{plan: d, of: x, state: s}
	switch {
	case x.DAG != nil:
		m.body = newDAG(x, s)
	case x.Loop != nil:
		m.body = newLoop(x, s)
	case x.Graph != nil:
		m.body = newGraph(x, s)
	case x.Action != nil || x.Wraps != nil:
		m.body = newSingle(x, s)
	}
	for _, c := range s.Calls {
		c.of = m.callOf(c.Node)
	}
	return m, nil
}

// Watch sets a function that is called for each call. Set it before Begin.
func (m *Machine) Watch(watch Watch) { m.watch = watch }

// Check sets a function that is called for each child before it is created. If it returns an error,
// the child is not created, and its call ends with the error. Set it before Begin, and after
// Restore.
func (m *Machine) Check(check func(*Child) error) { m.check = check }

// Took sets, for kinds with adaptive limits, the time in ms within which 99.5 % of their tasks
// ended. Set it before Begin, and after Restore.
func (m *Machine) Took(took map[string]int64) { m.took = took }

// Until makes the machine stop within a step when a context ends, because a step with many nodes
// that take no time can be long. Then its steps are incomplete, Err returns the cause, and the
// machine must not be used any more. Set it before Begin, and after Restore.
func (m *Machine) Until(ctx context.Context) { m.until = ctx }

// Err returns the cause if the machine has stopped within a step, otherwise nil.
func (m *Machine) Err() error {
	if m.until == nil {
		return nil
	}
	return context.Cause(m.until)
}

// State returns the state for Restore.
func (m *Machine) State() ([]byte, error) {
	if err := fits(m.state); err != nil {
		return nil, err
	}
	return json.Marshal(m.state)
}

// Begin begins the run at an instant.
func (m *Machine) Begin(at time.Time) Steps {
	m.at = at
	if inputs, err := withDefaults(m.of, m.state.Inputs); err != nil {
		m.end(End{Phase: Error, Msg: err.Error()})
	} else {
		m.state.Inputs = inputs
		m.body.begin(m)
	}
	return m.take()
}

// Ended handles the end of a child.
func (m *Machine) Ended(child string, e End) Steps {
	c := m.state.Calls[child]
	if c == nil || m.state.Over {
		return Steps{} // the call has ended already, or the run has
	}
	m.at = e.At
	delete(m.state.Calls, child)
	if !m.retry(c, &e) {
		m.ended(c.Node, c.Key, child, e)
	}
	return m.take()
}

// ended passes the end of a call to the body.
func (m *Machine) ended(node, key, child string, e End) {
	if m.watch != nil {
		m.watch(node, key, child, &e)
	}
	m.body.ended(m, key, e)
}

// Follow handles the end of a child, after the limits that had passed before it.
func (m *Machine) Follow(child string, e End) Steps {
	steps := m.PassedBefore(e.At)
	steps.Add(m.Ended(child, e))
	return steps
}

// PassedBefore handles all limits that had passed before an instant.
func (m *Machine) PassedBefore(at time.Time) (steps Steps) {
	for _, until := m.Limit(); !until.IsZero() && until.Before(at); _, until = m.Limit() {
		steps.Add(m.Passed())
	}
	return steps
}

// Limit returns the instant at which Passed must be called unless a child ends before, and the
// instant from which this limit is counted. Both are zero if nothing has a limit, and after the end.
func (m *Machine) Limit() (from, until time.Time) {
	if m.state.Over {
		return from, until
	}
	return m.body.limit()
}

// Proceeds reports whether the template continues when the instant of Limit passes.
func (m *Machine) Proceeds() bool {
	g, ok := m.body.(*graph)
	return ok && g.proceeds()
}

// Passed handles that the instant of Limit has passed.
func (m *Machine) Passed() Steps {
	_, m.at = m.body.limit()
	m.body.passed(m)
	return m.take()
}

// take handles the ends of calls that take no time, and returns the steps.
func (m *Machine) take() Steps {
	for len(m.due) > 0 && !m.state.Over && m.Err() == nil {
		next := m.due[0]
		m.due, m.held = m.due[1:], m.held-next.size
		m.body.ended(m, next.key, next.end)
	}
	m.due, m.held = nil, 0
	steps := m.steps
	m.steps = Steps{}
	return steps
}

// end ends the template.
func (m *Machine) end(e End) {
	if m.state.Over {
		return
	}
	if e.Phase == Succeeded && e.Outputs == nil && e.Result != nil {
		e.Outputs, e.Result = map[string]any{"value": e.Result}, nil // the result of a run must be an object
	}
	e.At = m.at
	if err := fits(e.Outputs); err != nil {
		e = End{Phase: Error, Msg: err.Error(), At: m.at}
	}
	m.state.Over, m.steps.End = true, &e
}

// withDefaults returns inputs with the template's defaults for those that are missing. A default can
// read the passed inputs, and the inputs that are declared before it.
func withDefaults(x *plan.Template, given map[string]any) (map[string]any, error) {
	values := map[string]any{}
	maps.Copy(values, given)
	for _, p := range x.Inputs {
		if _, ok := values[p.Name]; ok {
			continue
		}
		if p.Value == nil {
			return nil, fmt.Errorf("the input %s of the template %s is missing", p.Name, x.Name)
		}
		v, err := p.Value.Value(map[string]any{"inputs": map[string]any{"parameters": values}})
		if err != nil {
			return nil, fmt.Errorf("the input %s of the template %s: %w", p.Name, x.Name, err)
		}
		values[p.Name] = v
	}
	if len(values) == len(given) {
		return values, nil // checked by the caller
	}
	return values, inputsFit(values)
}

// inputsFit returns an error for inputs that are too large together, even if each single input is
// not.
func inputsFit(inputs map[string]any) error {
	if err := value.Check(inputs); err != nil {
		return fmt.Errorf("its inputs: %w", err)
	}
	return nil
}

// variables returns the inputs in the form that expressions read.
func (m *Machine) variables() map[string]any {
	return map[string]any{"inputs": map[string]any{"parameters": m.state.Inputs}}
}

// start begins a call. The body's method ended gets its end with the key.
func (m *Machine) start(c *plan.Call, key string, variables map[string]any) {
	if m.Err() != nil {
		return
	}
	if m.state.Made++; m.state.Made > m.plan.MaxNodes {
		m.end(End{Phase: Error, Msg: fmt.Sprintf("the run has made %d nodes, its limit", m.plan.MaxNodes)}) // the end comes before the next node begins
		return
	}
	inputs, action, options, err := m.resolve(c, variables)
	switch {
	case err != nil:
		m.perform(c, key, End{Phase: Error, Msg: err.Error()})
	case action != nil && inline(action, inputs):
		m.perform(c, key, yield(action, inputs, options))
	default:
		m.dispatch(&call{Key: key, Node: c.Name, First: m.at, In: inputs, of: c}, options)
	}
}

// resolve evaluates the inputs of a call, and returns its action: its own, or the action of a leaf
// template.
func (m *Machine) resolve(c *plan.Call, variables map[string]any) (inputs map[string]any, action *plan.Action, options map[string]any, err error) {
	inputs = map[string]any{}
	if m.of.Action != nil { // a run that begins with a leaf: its call has the inputs of the template
		maps.Copy(inputs, m.state.Inputs)
	}
	for _, p := range c.Inputs {
		if p.Value == nil {
			continue
		}
		if inputs[p.Name], err = p.Value.Value(variables); err != nil {
			return nil, nil, nil, fmt.Errorf("the input %s: %w", p.Name, err)
		}
	}
	if err = inputsFit(inputs); err != nil {
		return nil, nil, nil, err
	}
	action = c.Action
	if x := m.plan.Templates[c.Template]; x != nil && x.Action != nil {
		if inputs, err = withDefaults(x, inputs); err != nil {
			return nil, nil, nil, err
		}
		action, variables = x.Action, map[string]any{"inputs": map[string]any{"parameters": inputs}}
	}
	if action == nil || action.Options == nil {
		return inputs, action, nil, nil
	}
	v, err := action.Options.Value(variables)
	options, _ = v.(map[string]any)
	return inputs, action, options, err
}

// dispatch creates the child of the next attempt of a call.
func (m *Machine) dispatch(c *call, options map[string]any) {
	c.Tries++
	child := Child{Node: c.Node, Action: m.action(c), Inputs: c.In, Options: options, Times: m.times(c), Retry: c.of.Retry}
	if child.Action == nil {
		child.Template = c.of.Template
	}
	if isRetriedHere(child.Action) {
		m.setLimits(&child, c)
	}
	m.name(&child, c)
	if m.check != nil {
		if err := m.check(&child); err != nil {
			m.perform(c.of, c.Key, End{Phase: Error, Msg: err.Error()})
			return
		}
	}
	if m.watch != nil {
		m.watch(c.Node, c.Key, child.Name, nil)
	}
	m.state.Calls[child.Name] = c
	m.steps.Create = append(m.steps.Create, child)
}

// setLimits sets the limits of an attempt of a call that this machine retries: the attempt's own
// limit, within the limit of all attempts. The former counts from the creation of the attempt, the
// latter from the creation of the first attempt.
func (m *Machine) setLimits(child *Child, c *call) {
	total, each := child.Times.Total, child.Times.Attempt
	child.Retry, child.Times.Attempt, child.Times.Line = plan.Retry{}, plan.Span{}, plan.Span{}
	if c.Tries == 1 {
		child.Times.Total = total.Shorter(each)
		return
	}
	child.Times.Total, child.Begins = each, m.at.Add(c.of.Retry.Backoff.Before(c.Tries))
	if total.Time > 0 {
		child.Deadline = c.First.Add(total.Time)
	} else if !each.Set {
		child.Times.Total = total // no limit
	}
}

// name sets the name of a child, from the node, its place in the run, and the attempt. A child that
// waits for a signal has the name of the signal's child.
func (m *Machine) name(child *Child, c *call) {
	signal, _ := child.Options["signal"].(string)
	switch {
	case child.Action != nil && child.Action.Type == plan.Wait && signal != "":
		if m.state.Signals == nil {
			m.state.Signals = map[string]int{}
		}
		m.state.Signals[signal]++
		child.Signal, child.Nth, child.Name = signal, m.state.Signals[signal], "s-"+signal
		if child.Nth > 1 {
			child.Name += "__" + strconv.Itoa(child.Nth)
		}
	default:
		child.Name = strings.ReplaceAll(c.Key, "/", "__")
		if c.Tries > 1 {
			child.Name += "__r" + strconv.Itoa(c.Tries)
		}
	}
}

// action returns the action of a call, nil if the call follows a template.
func (m *Machine) action(c *call) *plan.Action {
	if x := m.plan.Templates[c.of.Template]; x != nil {
		return x.Action
	}
	return c.of.Action
}

// times returns the limits of a call. Adaptive limits are computed from the times that the tasks of
// its kind took.
func (m *Machine) times(c *call) plan.Times {
	times := c.of.Times
	if x := m.plan.Templates[c.of.Template]; x != nil {
		times = times.Over(x.Times)
	}
	if a := m.action(c); a != nil {
		adaptive := times.Adapt.Of(time.Duration(m.took[a.Kind()]) * time.Millisecond)
		for _, limit := range []*plan.Span{&times.Total, &times.Attempt} {
			if limit.Adaptive {
				limit.Time = adaptive
			}
		}
	}
	if c.Total > 0 {
		times.Total.Time = c.Total
	}
	return times
}

// isRetriedHere reports whether the machine, not the queue, retries a call with this action. A retry
// of a template must begin with new children, which the queue cannot create.
func isRetriedHere(a *plan.Action) bool { return a == nil || a.Type == plan.WorkflowCall }

// retry begins another attempt of a call, and reports whether there is one. If the retry expression
// cannot be evaluated, there is none, and the message of the end names the error.
func (m *Machine) retry(c *call, e *End) bool {
	policy := c.of.Retry
	if e.Phase == Succeeded || e.Phase == Cancelled || c.Tries > policy.Limit || !isRetriedHere(m.action(c)) {
		return false
	}
	if c.Tries == 1 && !e.Began.IsZero() {
		m.startTotal(c, *e)
	}
	times := m.times(c)
	retried := e.Phase == Error || e.Phase == Timeout && (times.Retries || !times.Said)
	if policy.Expression != "" {
		var err error
		retried, err = expr.EvaluateRetry(c.of.Name, policy.Expression, expr.Attempt{Kind: c.of.Name, Phase: string(e.Phase), Code: e.Code, Msg: e.Msg, Parameters: e.Outputs})
		if err != nil {
			e.Msg = e.Msg + "; " + err.Error()
			return false
		}
	}
	next := e.At.Add(policy.Backoff.Before(c.Tries + 1))
	if total := times.Total; !retried || total.Time > 0 && !next.Before(c.First.Add(total.Time)) {
		return false
	}
	m.dispatch(c, nil)
	return true
}

// startTotal starts the total timeout at the first attempt, which has ended. An adaptive timeout
// keeps its first value, so that a replay, which does not know the figures at that time, agrees.
func (m *Machine) startTotal(c *call, first End) {
	c.First = first.Began
	times := m.times(c)
	had := first.Until.Sub(first.Began)
	if each := times.Attempt; times.Total.Adaptive && !first.Until.IsZero() && (each.Time == 0 || each.Adaptive || had < each.Time) {
		c.Total = had
	}
}

// callOf returns the call of a node.
func (m *Machine) callOf(node string) *plan.Call {
	switch {
	case m.of.DAG != nil:
		return m.of.DAG.Node(node)
	case m.of.Graph != nil:
		return m.of.Graph.Node(node)
	case m.of.Loop != nil:
		return m.of.Loop.Body
	case m.of.Wraps != nil:
		return m.of.Wraps
	}
	return &plan.Call{Name: m.of.Name, Action: m.of.Action, Times: m.of.Times}
}

// inline reports whether the machine performs an action itself, because it takes no time.
func inline(a *plan.Action, inputs map[string]any) bool {
	return a.Type == plan.Set || a.Type == plan.Echo && inputs["suspend"] != true
}

// yield returns the end of an action that takes no time.
func yield(a *plan.Action, inputs, options map[string]any) End {
	e := End{Phase: Succeeded, Outputs: inputs}
	if suspend := inputs["suspend"]; a.Type == plan.Echo && suspend != nil && suspend != false {
		return End{Phase: Error, Msg: `the input suspend of echo must be true or false: a text such as "true" is neither`}
	}
	if a.Type == plan.Set {
		values, ok := options["values"].(map[string]any)
		if !ok {
			return End{Phase: Error, Msg: "the values of set must be an object"}
		}
		e.Outputs = values
	}
	return e
}

// perform queues the end of a call that takes no time. The body handles it after its present work,
// so that a long chain of such calls is no deep recursion.
func (m *Machine) perform(c *plan.Call, key string, e End) {
	e.At = m.at
	if m.watch != nil {
		m.watch(c.Name, key, "", nil)
		m.watch(c.Name, key, "", &e)
	}
	next := due{key, e, value.Size(e.Outputs, maxKept)}
	m.due = append(m.due, next)
	m.weigh(next.size)
}
