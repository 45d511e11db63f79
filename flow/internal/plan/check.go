package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// maxNodes is how many nodes a definition can have, and how many a run makes at most if it says nothing.
const maxNodes = 100_000

// unknown is the fault of a name that nothing has.
func (r *reader) unknown(t *tree, what, name string, known []string) {
	r.at(t, "%s", r.noSuch(what, name, known))
}

// noSuch returns the error for an unknown name, with the nearest known one.
func (r *reader) noSuch(what, name string, known []string) string {
	advice := ""
	if near := offered(r.nearest(name, known)); len(near) > 0 && len(name) > 2 {
		advice = ": did you mean " + near[0] + "?"
	} else if len(known) <= 20 {
		if known = offered(known...); len(known) > 0 {
			advice = ": there is " + strings.Join(known, ", ")
		}
	}
	return fmt.Sprintf("there is no %s %q%s", what, clip.Text(name, quoted), advice)
}

// offered returns the names that may have been meant, each once. A name that is itself a fault, such as one with a new line, is none.
func offered(names ...string) (all []string) {
	for _, name := range names {
		if name != "" && !slices.Contains(all, name) && !strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			all = append(all, name)
		}
	}
	return all
}

// mostCompared is how many names are compared to find what was meant in a definition: each takes microseconds.
const mostCompared = 20_000

// nearest returns the name that was meant, "" if none is near.
func (r *reader) nearest(name string, known []string) string {
	if r.compared += len(known); r.compared > mostCompared {
		return ""
	}
	return names.Nearest(name, known)
}

// field returns where a field of a part of the plan is in the file, or the part itself.
func (r *reader) field(of any, name string) *tree {
	t := r.places[of]
	return cmp.Or(t.member(name), t)
}

// check finds the errors that concern a plan as a whole: unknown names, and runs without end.
func (r *reader) check() {
	d := r.d
	r.templates = slices.Sorted(maps.Keys(d.Templates))
	if entry := d.Templates[d.Entry]; entry != nil {
		entry.inherit(d.Inputs)
		d.boundBy(entry)
	} else if d.Entry != "" {
		r.unknown(r.entry, "template", d.Entry, r.templates)
	}
	n := 0
	for _, name := range r.templates {
		n += r.checkTemplate(d.Templates[name])
	}
	if n > maxNodes {
		r.at(&tree{line: 1}, "has more than 100000 nodes")
	}
	r.checkRecursion()
	r.checkItself()
}

// checkTemplate checks one template. It returns how many nodes it has.
func (r *reader) checkTemplate(x *Template) int {
	r.checkDefaults(x)
	switch {
	case x.DAG != nil:
		r.checkDAG(x)
		return len(x.DAG.Nodes)
	case x.Loop != nil:
		if x.Loop.Body != nil {
			r.checkCall(x.Loop.Body)
			r.checkLoop(x)
		}
		return 1
	case x.Wraps != nil:
		r.checkCall(x.Wraps)
		return 1
	case x.Graph != nil:
		r.checkGraph(x)
		return len(x.Graph.Nodes)
	case x.Action != nil:
		r.checkReads(x, x.Action.Options, nil)
	}
	return 1
}

// checkCall checks a call by itself: its target, its inputs, its limits and its retries.
func (r *reader) checkCall(c *Call) {
	called := r.d.Templates[c.Template]
	switch {
	case c.Template == "":
	case called == nil:
		r.unknown(r.field(c, "template"), "template", c.Template, r.templates)
	default:
		r.checkInputs(c, called)
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
	r.checkRetry(c)
	r.checkAdaptive(c)
	r.checkNoWorker(c)
}

// checkNoWorker checks a call that no worker runs: it has no attempts, and never stands in line.
func (r *reader) checkNoWorker(c *Call) {
	action := r.d.Action(c)
	if action == nil || action.Type == "" || action.Kind() != "" {
		return
	}
	for _, name := range []string{"retry", "on_timeout", "queue_timeout"} {
		if t := r.field(c, name); t != r.places[c] {
			r.at(t, "does not belong to %s, which no worker runs: give timeout", action.Type)
		}
	}
}

// checkDefaults checks that the default of an input reads only what is known by then: inputs that are given, or declared before it.
func (r *reader) checkDefaults(x *Template) {
	declared := map[string]int{}
	for i, p := range x.Inputs {
		declared[p.Name] = i
	}
	for i, p := range x.Inputs {
		if p.Value == nil {
			continue
		}
		for _, path := range p.Value.Reads() {
			if path[0] != "inputs" || len(path) < 3 {
				continue
			}
			if position, exists := declared[path[2]]; exists && position >= i && x.Inputs[position].Value != nil {
				r.at(r.places[x], "the default of the input %s reads %s, which has a default of its own and is not declared before it", p.Name, path[2])
			}
		}
	}
}

// checkRetry checks the expression of a retry. It names the node; the task of the node knows its kind.
func (r *reader) checkRetry(c *Call) {
	if c.Retry.Expression == "" {
		return
	}
	t := r.field(c, "retry")
	if c.Times.Said && r.field(c, "on_timeout") != r.places[c] {
		r.at(r.field(c, "on_timeout"), "cannot be beside a retry with an expression: the expression decides about timeouts too")
	}
	t = cmp.Or(t.member("expression"), t)
	err := expr.CheckRetry(c.Name, c.Retry.Expression)
	action := r.d.Action(c)
	if err == nil && action != nil && action.Kind() != "" {
		err = expr.CheckRetry(action.Kind(), expr.RenameTask(c.Name, action.Kind(), c.Retry.Expression))
	}
	if err != nil {
		r.at(t, "%v", err)
	}
}

// boundBy bounds a run by the time of the template with which it begins.
func (d *Definition) boundBy(entry *Template) {
	if total := entry.Times.Total.Time; total > 0 && !entry.Times.Total.Adaptive && (d.Timeout.Time == 0 || total < d.Timeout.Time) {
		d.Timeout = Span{Set: true, Time: total}
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

// CheckInputs compares the parameters of a run with the inputs of its definition. Each parameter
// must be an input, and each input without a default must be a parameter.
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
		advice := cmp.Or(names.Hint(name, known), ": the definition takes "+cmp.Or(strings.Join(known, ", "), "none"))
		return refusal.Invalid("parameters", "have %s, which the definition does not know%s", clip.Text(name, quoted), advice)
	}
	for _, p := range d.Templates[d.Entry].Inputs {
		if _, exists := given[p.Name]; p.Value == nil && !exists {
			return refusal.Invalid("parameters", "are without %s, which the definition needs", p.Name)
		}
	}
	return nil
}

// checkInputs compares the arguments of a call with the inputs of its template.
func (r *reader) checkInputs(c *Call, called *Template) {
	arguments := map[string]bool{}
	for _, p := range c.Inputs {
		arguments[p.Name] = true
		if takes := r.inputsOf(called); called.Action == nil && !takes.has[p.Name] {
			r.unknown(r.argument(c, p.Name), "input of the template "+called.Name, p.Name, takes.names)
		}
	}
	for _, p := range r.inputsOf(called).needed {
		if !arguments[p] {
			r.at(r.places[c], "the template %s needs the input %s", called.Name, p)
		}
	}
}

// argument returns the name of an input that a call gives.
func (r *reader) argument(c *Call, name string) *tree {
	t := r.field(c, "inputs")
	if list, ok := cmp.Or(t.member("parameters"), t).value.([]*tree); ok {
		for _, item := range list {
			if n := item.member("name"); n != nil && n.value == name {
				return n
			}
		}
	}
	return t
}

// inputs are the inputs of a template.
type inputs struct {
	names, needed []string
	has           map[string]bool
}

// inputsOf returns the inputs of a template. They are listed once.
func (r *reader) inputsOf(x *Template) *inputs {
	values := r.takes[x]
	if values == nil {
		values = &inputs{has: map[string]bool{}}
		r.takes[x] = values
		for _, p := range x.Inputs {
			values.names, values.has[p.Name] = append(values.names, p.Name), true
			if p.Value == nil {
				values.needed = append(values.needed, p.Name)
			}
		}
	}
	return values
}

func (r *reader) checkLoop(x *Template) {
	l := x.Loop
	r.checkReads(x, l.Items, nil)
	if l.Until != nil {
		t := r.field(x, "loop")
		r.checkPaths(x, cmp.Or(t.member("until"), t), l.Until.Reads(), nil)
	}
	r.checkOwn(x, l.Body, nil)
}

// checkOwn checks the paths that the inputs and the options of a call read.
func (r *reader) checkOwn(x *Template, c *Call, early map[string]bool) {
	for _, p := range c.Inputs {
		r.checkReads(x, p.Value, early)
	}
	if c.Action != nil {
		r.checkReads(x, c.Action.Options, early)
	}
}

// checkReads checks what the expressions of a value read. A fault is at each text of the value that has it.
func (r *reader) checkReads(x *Template, value *expr.Template, early map[string]bool) {
	if value == nil || !slices.ContainsFunc(value.Reads(), func(path []string) bool { return r.wrongRead(x, path, early) != "" }) {
		return
	}
	source := r.values[value]
	for t := range source.t.texts {
		if compiled, err := expr.CompileTemplate(t.value, source.variables); err == nil {
			r.checkPaths(x, t, compiled.Reads(), early)
		}
	}
}

// checkPaths checks the inputs and nodes that the expressions of one text read.
func (r *reader) checkPaths(x *Template, t *tree, reads [][]string, early map[string]bool) {
	for _, path := range reads {
		if wrong := r.wrongRead(x, path, early); wrong != "" {
			r.at(t, "%s", wrong)
		}
	}
}

// wrongRead describes the error in a path that an expression of a template reads, "" if it is valid.
// early lists the nodes of a DAG that may not have ended when the expression is evaluated.
func (r *reader) wrongRead(x *Template, path []string, early map[string]bool) string {
	switch {
	case path[0] == "inputs" && len(path) > 1 && path[1] != "parameters":
		return fmt.Sprintf("there is no inputs.%s: write inputs.parameters.<name>", clip.Text(path[1], quoted))
	case path[0] == "inputs" && len(path) > 2 && !r.inputsOf(x).has[path[2]]:
		return r.noSuch("input", path[2], r.inputsOf(x).names)
	case path[0] == "tasks" && len(path) > 1 && x.DAG.Node(path[1]) == nil:
		return r.noSuch("node", path[1], x.DAG.names())
	case path[0] == "tasks" && len(path) > 1 && early[path[1]]:
		return fmt.Sprintf("reads tasks.%s, which may not have ended: add it to the dependencies", path[1])
	case path[0] == "nodes" && len(path) > 1 && x.Graph.Node(path[1]) == nil:
		return r.noSuch("node", path[1], x.Graph.names())
	}
	return ""
}
