package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// dag starts each node of a DAG when the nodes before it have ended.
type dag struct {
	Ended map[string]*End `json:"ended,omitempty"` // nodes whose values can still be read
	Done  []string        `json:"done,omitempty"`  // nodes whose values were dropped

	of     *plan.DAG
	done   map[string]bool
	left   map[string]int // number of dependencies that have not ended, for the nodes that were counted
	unread map[string]int // number of readers of a node that have not begun
}

func newDAG(x *plan.Template, s *state) *dag {
	d := s.DAG
	if d == nil {
		d = &dag{}
		s.DAG = d
	}
	if d.Ended == nil {
		d.Ended = map[string]*End{}
	}
	d.of, d.left, d.unread, d.done = x.DAG, map[string]int{}, map[string]int{}, make(map[string]bool, len(d.Done))
	for _, name := range d.Done {
		d.done[name] = true
	}
	for node, readers := range d.of.Readers {
		for _, reader := range readers {
			if d.pending(d.of.Node(reader)) > 0 {
				d.unread[node]++
			}
		}
	}
	return d
}

func (d *dag) begin(m *Machine) {
	for _, c := range d.of.Nodes {
		if len(c.After) == 0 {
			d.start(m, c)
		}
	}
}

func (d *dag) start(m *Machine, c *plan.Call) {
	if !m.state.Over {
		m.start(c, c.Name, d.variables(m, d.of.Reads[c.Name]))
	}
}

func (d *dag) ended(m *Machine, node string, e End) {
	c := d.of.Node(node)
	if e.Phase != Succeeded && !excused(c.Excuses, e.Phase) {
		m.end(End{Phase: failure(e.Phase), Code: e.Code, Msg: fmt.Sprintf("node %s: %s%s", node, e.Phase, withColon(e.Msg))})
		return
	}
	d.Ended[node] = &e
	for _, next := range d.of.Next[node] {
		if d.endDependency(next) > 0 {
			continue
		}
		d.start(m, next)
		for _, name := range d.of.Reads[next.Name] {
			d.release(name)
		}
	}
	if len(d.of.Readers[node]) == 0 {
		d.forget(node)
	}
	if len(d.Ended)+len(d.Done) == len(d.of.Nodes) {
		m.end(d.outcome(m))
	}
}

// endDependency counts down a node's dependencies, and returns the number that remain. It is called
// once for each dependency that ends.
func (d *dag) endDependency(c *plan.Call) int {
	if _, counted := d.left[c.Name]; counted {
		d.left[c.Name]--
	}
	return d.pending(c)
}

// pending returns the number of a node's dependencies that have not ended.
func (d *dag) pending(c *plan.Call) int {
	n, counted := d.left[c.Name]
	if !counted {
		for _, dependency := range c.After {
			if !d.has(dependency) {
				n++
			}
		}
		d.left[c.Name] = n
	}
	return n
}

func (d *dag) has(node string) bool { return d.done[node] || d.Ended[node] != nil }

// release records that a reader of a node has begun. When all readers have begun, the values of the
// node are dropped, so that the state of a long DAG stays small.
func (d *dag) release(node string) {
	if d.unread[node]--; d.unread[node] == 0 {
		d.forget(node)
	}
}

// forget drops the values of a node that has ended, unless the outputs of the DAG need them.
func (d *dag) forget(node string) {
	if d.Ended[node] == nil || d.of.Kept[node] {
		return
	}
	delete(d.Ended, node)
	d.done[node] = true
	d.Done = append(d.Done, node)
}

// variables returns the values for the expressions of a node: its inputs, and the ends of these
// nodes.
func (d *dag) variables(m *Machine, names []string) map[string]any {
	tasks := map[string]any{}
	for _, name := range names {
		tasks[name] = d.Ended[name].variables()
	}
	values := m.variables()
	values["tasks"] = tasks
	return values
}

// variables returns an end in the form that expressions read. For a nil end all values are nil.
func (e *End) variables() map[string]any {
	if e == nil {
		return notEnded
	}
	outputs := map[string]any{"parameters": e.Outputs, "result": e.yield()}
	return map[string]any{"phase": string(e.Phase), "code": e.Code, "msg": e.Msg, "outputs": outputs}
}

// value returns the output parameters of a node, or its result if that is no object.
func (e *End) value() any {
	if e.Outputs == nil {
		return e.Result
	}
	return e.Outputs
}

// outcome returns the end of a DAG whose nodes have all ended. A DAG without declared outputs yields
// the outputs of its last nodes, on which no other node depends. The outputs of a single last node
// are passed on unchanged. The outputs of several are an object by the names of the nodes.
func (d *dag) outcome(m *Machine) End {
	if d.of.Outputs != nil {
		return d.outputs(m)
	}
	last := map[string]any{}
	var newest *End
	for _, name := range slices.Sorted(maps.Keys(d.of.Kept)) {
		newest = d.Ended[name]
		last[name] = newest.value()
	}
	e := End{Phase: Succeeded, Outputs: last}
	if len(last) == 1 {
		e.Outputs, e.Result = maps.Clone(newest.Outputs), newest.Result
	}
	return e
}

func (d *dag) outputs(m *Machine) End {
	values, variables := map[string]any{}, d.variables(m, slices.Sorted(maps.Keys(d.of.Kept)))
	for _, p := range d.of.Outputs {
		v, err := p.Value.Value(variables)
		if err != nil {
			return End{Phase: Error, Msg: fmt.Sprintf("the output %s: %v", p.Name, err)}
		}
		values[p.Name] = v
	}
	return End{Phase: Succeeded, Outputs: values}
}

func (d *dag) limit() (from, until time.Time) { return from, until }
func (d *dag) passed(*Machine)                {}

// excused reports whether the next nodes can begin in spite of such an end.
func excused(x plan.Endings, p Phase) bool {
	return x.Failed && p == Failed || x.Error && p == Error || x.Timeout && p == Timeout || x.Cancelled && p == Cancelled
}

// failure returns the phase of a template with a node that has ended in a way that is not excused.
func failure(p Phase) Phase {
	if p == Error {
		return Error
	}
	return Failed
}

func withColon(msg string) string {
	if msg == "" {
		return ""
	}
	return ": " + msg
}
