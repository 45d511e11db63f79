package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/flow/internal/expression"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/retryexpr"
)

// maxNodes is how many nodes a definition can have, and how many a run makes at most if it says nothing.
const maxNodes = 100_000

// unknown is the fault of a name that nothing has.
func (r *reader) unknown(t *tree, what, name string, known []string) {
	advice := ""
	if near := names.Nearest(name, known); near != "" && len(name) > 2 {
		advice = ": did you mean " + near + "?"
	} else if len(known) > 0 && len(known) <= 20 {
		advice = ": there is " + strings.Join(known, ", ")
	}
	r.at(t, "there is no %s %q%s", what, clip(name), advice)
}

// field returns where a field of a part of the plan is in the file, or the part itself.
func (r *reader) field(of any, name string) *tree {
	t := r.places[of]
	if members, ok := t.value.([]member); ok {
		for _, m := range members {
			if m.name == name {
				return m.value
			}
		}
	}
	return t
}

// check finds what is wrong with a plan as a whole: names that nothing has, and what never ends.
func (r *reader) check() {
	d := r.d
	if entry := d.Templates[d.Entry]; entry != nil {
		entry.inherit(d.Inputs)
	} else if d.Entry != "" {
		r.unknown(r.entry, "template", d.Entry, r.templates())
	}
	n := 0
	for _, name := range r.templates() {
		x := d.Templates[name]
		n += r.checkTemplate(x)
	}
	if n > maxNodes {
		r.faults = append(r.faults, Fault{Line: 1, Text: "has more than 100000 nodes"})
	}
	r.checkRecursion()
}

func (r *reader) templates() []string { return slices.Sorted(maps.Keys(r.d.Templates)) }

// checkTemplate checks one template. It returns how many nodes it has.
func (r *reader) checkTemplate(x *Template) int {
	if x.Action.callsFlow() {
		x.Times.ofRun()
	}
	switch {
	case x.DAG != nil:
		r.checkDAG(x)
		return len(x.DAG.Nodes)
	case x.Loop != nil:
		if x.Loop.Body != nil {
			r.checkCall(x, x.Loop.Body)
			r.checkLoop(x)
		}
		return 1
	case x.Wraps != nil:
		r.checkCall(x, x.Wraps)
		return 1
	case x.Graph != nil:
		r.checkGraph(x)
		return len(x.Graph.Nodes)
	case x.Action != nil:
		r.checkReads(x, r.places[x.Action], x.Action.Options, nil)
	}
	return 1
}

// checkCall checks a call by itself: what it calls, its inputs, its limits and its retries.
func (r *reader) checkCall(of *Template, c *Call) {
	called := r.d.Templates[c.Template]
	if c.Action.callsFlow() || called != nil && called.Action.callsFlow() {
		c.Times.ofRun()
	}
	switch {
	case c.Template == "":
	case called == nil:
		r.unknown(r.field(c, "template"), "template", c.Template, r.templates())
	default:
		r.checkInputs(c, called)
	}
	if a := c.Action; of.Graph == nil && a != nil && a.Type == WorkflowCall && a.Flow == r.d.ID && a.Flow != "" {
		r.at(r.places[a], "each run calls %s itself, without end", a.Flow)
	}
	container := called != nil && called.Container()
	if container && c.Retry.Limit > 0 {
		r.at(r.field(c, "retry"), "%s is a container, and only leaves are retried: call a template {\"name\": …, \"task\": {\"template\": %q}}, and give that call the retry", c.Template, c.Template)
	}
	if container && (c.Times.Attempt.Set || c.Times.Line.Set || c.Times.Said) {
		r.at(r.places[c], "%s is a container: give timeout, which bounds the whole of it, and leave out attempt_timeout, queue_timeout, timeout_ms and on_timeout", c.Template)
	}
	if c.Times.Retries && c.Retry.Limit == 0 {
		r.at(r.field(c, "on_timeout"), "is retry, and there is no limit: give retry with a limit")
	}
	r.checkRetry(c, called)
	r.checkAdaptive(c, called)
}

// checkRetry checks the expression of a retry. It names the node; the task of the node knows its kind.
func (r *reader) checkRetry(c *Call, called *Template) {
	if c.Retry.Expression == "" {
		return
	}
	t := r.field(c, "retry")
	if c.Times.Said && r.field(c, "on_timeout") != r.places[c] {
		r.at(r.field(c, "on_timeout"), "cannot be beside a retry with an expression: the expression decides about timeouts too")
	}
	t = &tree{path: below(t.path, "expression"), line: t.line}
	err := retryexpr.Check(c.Name, c.Retry.Expression)
	action := c.Action
	if called != nil {
		action = called.Action
	}
	if err == nil && action != nil && action.Kind() != "" {
		err = retryexpr.Check(action.Kind(), retryexpr.Rename(c.Name, action.Kind(), c.Retry.Expression))
	}
	if err != nil {
		r.at(t, "%v", err)
	}
}

// inherit adds the inputs of a run to the template with which it begins.
func (x *Template) inherit(inputs []Parameter) {
	for _, p := range inputs {
		if !slices.ContainsFunc(x.Inputs, func(q Parameter) bool { return q.Name == p.Name }) {
			x.Inputs = append(x.Inputs, p)
		}
	}
}

// CheckInputs compares the parameters of a run with the inputs of its definition: it knows all, and those that it needs are there.
func (d *Definition) CheckInputs(given map[string]any) error {
	var known []string
	for _, p := range d.Templates[d.Entry].Inputs {
		known = append(known, p.Name)
	}
	slices.Sort(known)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) {
			continue
		}
		advice := ": the definition takes none"
		if near := names.Nearest(name, known); near != "" {
			advice = ": did you mean " + near + "?"
		} else if len(known) > 0 {
			advice = ": the definition takes " + strings.Join(known, ", ")
		}
		return refusal.Invalid("parameters", "have %s, which the definition does not know%s", clip(name), advice)
	}
	for _, p := range d.Templates[d.Entry].Inputs {
		if _, there := given[p.Name]; p.Value == nil && !there {
			return refusal.Invalid("parameters", "are without %s, which the definition needs", p.Name)
		}
	}
	return nil
}

// checkInputs compares what a call gives with what a template takes.
func (r *reader) checkInputs(c *Call, called *Template) {
	var takes []string
	for _, p := range called.Inputs {
		takes = append(takes, p.Name)
		if p.Value == nil && !slices.ContainsFunc(c.Inputs, func(q Parameter) bool { return q.Name == p.Name }) {
			r.at(r.places[c], "the template %s needs the input %s", called.Name, p.Name)
		}
	}
	for _, p := range c.Inputs {
		if !slices.Contains(takes, p.Name) && called.Action == nil {
			r.unknown(r.field(c, "inputs"), "input of the template "+called.Name, p.Name, takes)
		}
	}
}

func (r *reader) checkLoop(x *Template) {
	l := x.Loop
	r.checkReads(x, r.field(x, "loop"), l.Items, nil)
	if l.Until != nil {
		r.checkPaths(x, r.field(x, "loop"), l.Until.Reads(), nil)
	}
	for _, p := range l.Body.Inputs {
		r.checkReads(x, r.places[l.Body], p.Value, nil)
	}
}

// checkReads checks what the expressions of a value read.
func (r *reader) checkReads(x *Template, t *tree, value *expression.Template, known map[string]bool) {
	if value != nil {
		r.checkPaths(x, t, value.Reads(), known)
	}
}

// checkPaths checks the inputs and nodes that expressions read. known has the nodes that have ended when the expressions are
// evaluated; nil: any path is good.
func (r *reader) checkPaths(x *Template, t *tree, reads [][]string, known map[string]bool) {
	for _, path := range reads {
		switch {
		case path[0] == "inputs" && len(path) > 1 && path[1] != "parameters":
			r.at(t, "there is no inputs.%s: write inputs.parameters.<name>", clip(path[1]))
		case path[0] == "inputs" && len(path) > 2:
			r.checkInput(x, t, path[2])
		case path[0] == "tasks" && len(path) > 1 && known != nil && !known[path[1]]:
			if x.DAG.Node(path[1]) == nil {
				r.unknown(t, "node", path[1], x.DAG.names())
			} else {
				r.at(t, "reads tasks.%s, which may not have ended: add it to the dependencies", path[1])
			}
		case path[0] == "nodes" && len(path) > 1 && x.Graph.Node(path[1]) == nil:
			r.unknown(t, "node", path[1], x.Graph.names())
		}
	}
}

// checkInput checks that a template has an input.
func (r *reader) checkInput(x *Template, t *tree, name string) {
	var known []string
	for _, p := range x.Inputs {
		known = append(known, p.Name)
	}
	if !slices.Contains(known, name) {
		r.unknown(t, "input", name, known)
	}
}

// calls returns the templates that a template calls.
func (x *Template) calls() (all []string) {
	add := func(c *Call) {
		if c != nil && c.Template != "" {
			all = append(all, c.Template)
		}
	}
	if x.DAG != nil {
		for _, c := range x.DAG.Nodes {
			add(c)
		}
	}
	if x.Loop != nil {
		add(x.Loop.Body)
	}
	add(x.Wraps)
	return all
}

// checkRecursion finds templates that call themselves: nothing would end that.
func (r *reader) checkRecursion() {
	const under, done = 1, 2
	state := map[string]int{}
	var visit func(name string, from []string)
	visit = func(name string, from []string) {
		x := r.d.Templates[name]
		switch {
		case x == nil || state[name] == done:
			return
		case state[name] == under:
			i := slices.Index(from, name)
			r.at(r.places[x], "the template calls itself without end: %s", strings.Join(append(from[i:], name), " → "))
			return
		}
		state[name] = under
		for _, called := range x.calls() {
			visit(called, append(from[:len(from):len(from)], name))
		}
		state[name] = done
	}
	for _, name := range r.templates() {
		visit(name, nil)
	}
}
