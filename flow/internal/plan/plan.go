// Package plan reads definitions of flows. A definition is written in one of two spellings, or in both mixed: templates with
// DAGs and loops, whose times are texts (timeout: 10s), or a graph of nodes and transitions, whose times are numbers
// (timeout_ms: 10000). Read makes one plan of both. It finds all faults of a definition at once.
package plan

import (
	"cmp"
	"time"

	"github.com/curfew-dev/curfew/internal/expr"
)

// DefaultTimeout is the timeout of a run if the definition sets none.
const DefaultTimeout = time.Hour

// Definition is a plan that runs can follow.
type Definition struct {
	ID, Version, Description string

	Timeout Span // of a run; it is always set
	Fails   bool // a run that is out of time fails, and is no timeout for its parent: on_timeout is fail
	Hooks   Hooks
	Inputs  []Parameter // of a run

	MaxNodes int // how many nodes a run can make

	Entry     string // the template with which a run begins
	Templates map[string]*Template
}

// Span is a limit of time. It is not set if a definition says nothing; null sets it to no limit, which is 0.
type Span struct {
	Set      bool
	Time     time.Duration
	Adaptive bool // what tasks of the kind took so far decides
}

// Over returns the span if it is set, and otherwise the other one.
func (s Span) Over(other Span) Span {
	if s.Set {
		return s
	}
	return other
}

// Shorter returns the limit that ends first. A limit that is not set or is none ends nothing.
func (s Span) Shorter(other Span) Span {
	if s.Time == 0 && (other.Time > 0 || !s.Set) || other.Time > 0 && other.Time < s.Time {
		return other
	}
	return s
}

// Hooks are the tasks that are enqueued when a run has ended. An empty kind is no hook.
type Hooks struct {
	Success, Failure, Timeout, Cancel Hook
}

// Hook is a task that follows a run.
type Hook struct{ Kind, Queue string }

// Parameter is an input that a template or a run has. Value is what it has if the caller gives none; nil: the caller must
// give one.
type Parameter struct {
	Name  string
	Value *expr.Template
}

// Template is a named part of a definition. Exactly one of DAG, Loop, Graph, Action and Wraps is set.
type Template struct {
	Name   string
	Inputs []Parameter
	Times  Times // for calls that do not say their own

	DAG    *DAG
	Loop   *Loop
	Graph  *Graph
	Action *Action
	Wraps  *Call // a call of another template, so that it can be retried as a whole
}

// Container reports whether the template has nodes of its own. A call of a container cannot be retried.
func (t *Template) Container() bool { return t.DAG != nil || t.Loop != nil || t.Graph != nil }

// Calls returns the nodes of a template in the order of the definition: all nodes of a DAG or a
// graph, and otherwise the only call.
func (t *Template) Calls() []*Call {
	switch {
	case t.DAG != nil:
		return t.DAG.Nodes
	case t.Graph != nil:
		return t.Graph.Nodes
	case t.Loop != nil && t.Loop.Body != nil:
		return []*Call{t.Loop.Body}
	case t.Loop != nil:
		return nil
	case t.Wraps != nil:
		return []*Call{t.Wraps}
	}
	return []*Call{{Name: t.Name, Action: t.Action, Times: t.Times}}
}

// Call returns the node with a name, nil if there is no such node.
func (t *Template) Call(name string) *Call {
	for _, c := range t.Calls() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Action returns the action of a call: its own, or the action of the template that it calls; nil if
// it calls no leaf.
func (d *Definition) Action(c *Call) *Action {
	if called := d.Templates[c.Template]; called != nil {
		return called.Action
	}
	return c.Action
}

// Times returns the limits of a call, with the limits of the template that it calls as defaults.
func (d *Definition) Times(c *Call) Times {
	if called := d.Templates[c.Template]; called != nil {
		return c.Times.Over(called.Times)
	}
	return c.Times
}

// Times are the limits of a call.
type Times struct {
	Total   Span // all attempts together, from the creation
	Attempt Span // one attempt
	Line    Span // in line, before an attempt
	Retries bool // an attempt that takes too long is retried; Said: the definition says so, or says that it is not
	Said    bool

	Adapt Adapt // of an adaptive one
}

// AtMost returns the times with the longest time in the place of an adaptive one.
func (t Times) AtMost() Times {
	for _, limit := range []*Span{&t.Total, &t.Attempt} {
		if limit.Adaptive {
			limit.Time = t.Adapt.Most
		}
	}
	return t
}

// Adapt computes an adaptive limit from the times of a kind's tasks: the factor times the time
// within which 99.5 % of them ended, but at least Least and at most Most.
type Adapt struct {
	Least, Most time.Duration
	Factor      float64
}

// Of returns the limit for a kind. took is what 99.5 % of its tasks took at most; 0: not enough is known.
func (a Adapt) Of(took time.Duration) time.Duration {
	if took <= 0 || float64(took)*a.Factor > float64(a.Most) {
		return a.Most
	}
	return max(time.Duration(float64(took)*a.Factor), a.Least)
}

// Call is a place in a plan where something runs: a node of a DAG or of a graph, the body of a loop,
// or the call of a wrapper.
type Call struct {
	Name     string
	Template string  // what it calls: a template,
	Action   *Action // or an action
	Inputs   []Parameter
	After    []string // of a DAG: the nodes whose end this one awaits
	Times    Times
	Retry    Retry
	Excuses  Endings
}

// Retry configures the further attempts of a failed call.
type Retry struct {
	Set        bool // the definition says something
	Limit      int
	Expression string // "": errors and timeouts are retried, failures are not
	Backoff    Backoff
}

// Backoff is the time between attempts.
type Backoff struct {
	Delay, Max  time.Duration
	Exponential bool
}

// Before returns the time before an attempt, of which the first is 1.
func (b Backoff) Before(attempt int) time.Duration {
	if attempt < 2 {
		return 0
	}
	d := b.Delay
	for i := 2; i < attempt && b.Exponential && d < maxBackoff; i++ {
		d *= 2
	}
	return min(d, cmp.Or(b.Max, maxBackoff))
}

// maxBackoff is the longest pause between two attempts, as of tasks.
const maxBackoff = 24 * time.Hour

// Endings is a set of ways to end without success.
type Endings struct{ Failed, Error, Timeout, Cancelled bool }

// Action is the work of a leaf.
type Action struct {
	Type     string // echo, sleep, wait, set, http_request, workflow_call, or the kind of a task
	Queue    string
	Priority int
	Options  *expr.Template // an object; its members depend on the type

	Flow, Version string // of workflow_call
}

// DAG has nodes that run as soon as the nodes before them have ended.
type DAG struct {
	Nodes   []*Call
	Outputs []Parameter // nil: those of its last nodes

	Next    map[string][]*Call  // the nodes that await a node
	Reads   map[string][]string // the nodes whose ends the expressions of a node read
	Readers map[string][]string // the nodes that read a node
	Kept    map[string]bool     // the nodes that the outputs of the DAG read
	byName  map[string]*Call
	all     []string // the names of the nodes
}

// Loop runs its body again and again: for each item of a list, or until an expression holds.
type Loop struct {
	Body     *Call
	Items    *expr.Template   // a list; or
	Until    *expr.Expression // evaluated after each round
	Most     int              // rounds
	Parallel int              // rounds of a list at once
}

// Graph has nodes that are joined by transitions. A run begins with one token at Initial. When the node of a token has
// ended, the token follows each transition whose condition holds.
type Graph struct {
	Initial     string
	Nodes       []*Call
	Transitions []*Transition
	Output      *expr.Template // of the run; nil: its state

	Read []string // the nodes whose ends some expression reads

	byName   map[string]*Call
	all      []string                 // the names of the nodes
	leaving  map[string][]*Transition // a node
	meetings map[string]*Transition   // of fan-outs
	reads    map[string][]string      // the nodes whose ends the expressions of a node read
	kept     map[string]bool          // the nodes whose ends are read, also by the output
}

// Transition leads a token from a node to another one.
type Transition struct {
	ID, From, To string
	Condition    *expr.Expression // nil: it always holds
	FanOut       *FanOut
	Meet         *Meeting
}

// FanOut makes several tokens of one.
type FanOut struct {
	Count int
	Items *expr.Template // one token for each item of a list; nil: Count tokens
}

// Meeting is where the tokens of a fan-out become one again.
type Meeting struct {
	Group   string // the transition whose fan-out made the tokens
	Any     bool   // the first token that completes is enough
	M       int    // so many that complete are enough; 0 without Any: all
	Timeout Span   // from the first token that arrives or is lost; not set: computed
	Proceed bool   // at the timeout, continue with those that have completed
	Merge   Merge
}

// Merge configures how the results of tokens become one value.
type Merge struct {
	Source   []string // of a branch: the names of the path
	Target   []string // of the run
	Strategy string   // append, merge_object, keyed_by_branch or last_wins
}

// Listed returns how many items a list of a definition has, if no run decides that.
func Listed(items *expr.Template) (n int, known bool) {
	if items == nil || len(items.Reads()) > 0 {
		return 0, false
	}
	v, err := items.Value(nil)
	list, ok := v.([]any)
	return len(list), err == nil && ok
}

// Made returns how many tokens a fan-out makes, if no run decides that.
func (f *FanOut) Made() (n int, known bool) {
	if f.Items != nil {
		return Listed(f.Items)
	}
	return f.Count, f.Count > 0
}
