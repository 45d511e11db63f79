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
	Ended map[string]*End `json:"ended,omitempty"` // whose values can still be read
	Done  []string        `json:"done,omitempty"`  // whose values cannot

	of   *plan.DAG
	done map[string]bool
	left map[string]int // how many of a node's dependencies have not ended, of the nodes that were counted
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
	d.of, d.left, d.done = x.DAG, map[string]int{}, make(map[string]bool, len(d.Done))
	for _, name := range d.Done {
		d.done[name] = true
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
		if d.count(next) == 0 {
			d.start(m, next)
		}
	}
	d.forget(node)
	for _, next := range d.of.Next[node] {
		for _, name := range d.of.Reads[next.Name] {
			d.forget(name)
		}
	}
	if len(d.Ended)+len(d.Done) == len(d.of.Nodes) {
		m.end(d.outcome(m))
	}
}

// count returns how many of a node's dependencies have not ended. It is called when one of them has ended, once for each.
func (d *dag) count(c *plan.Call) int {
	left, counted := d.left[c.Name]
	if counted {
		left--
	} else {
		for _, before := range c.After {
			if !d.has(before) {
				left++
			}
		}
	}
	d.left[c.Name] = left
	return left
}

func (d *dag) has(node string) bool { return d.done[node] || d.Ended[node] != nil }

// forget drops the values of a node that has ended if nothing reads them any more, so that the state of a long DAG stays small.
func (d *dag) forget(node string) {
	if d.Ended[node] == nil || d.of.Kept[node] {
		return
	}
	for _, reader := range d.of.Readers[node] {
		for _, before := range d.of.Node(reader).After {
			if !d.has(before) {
				return // it has not begun
			}
		}
	}
	delete(d.Ended, node)
	d.done[node] = true
	d.Done = append(d.Done, node)
}

// variables returns what the expressions of a node can read: its inputs, and the ends of some nodes.
func (d *dag) variables(m *Machine, names []string) map[string]any {
	tasks := map[string]any{}
	for _, name := range names {
		tasks[name] = d.Ended[name].variables()
	}
	all := m.variables()
	all["tasks"] = tasks
	return all
}

// variables returns an end as expressions read it. Of a nil end all is nil.
func (e *End) variables() map[string]any {
	if e == nil {
		return notEnded
	}
	outputs := map[string]any{"parameters": e.Outputs, "result": e.yield()}
	return map[string]any{"phase": string(e.Phase), "code": e.Code, "msg": e.Msg, "outputs": outputs}
}

// outcome returns the end of a DAG whose nodes have all ended. Unless it says what it yields, its outputs are those of the nodes that no
// other node awaits: of one such node its own, of several theirs by the names of the nodes.
func (d *dag) outcome(m *Machine) End {
	if d.of.Outputs != nil {
		return d.outputs(m)
	}
	last := map[string]any{}
	var only *End
	for _, name := range slices.Sorted(maps.Keys(d.of.Kept)) {
		only = d.Ended[name]
		last[name] = only.Outputs
	}
	e := End{Phase: Succeeded, Outputs: last}
	if len(last) == 1 {
		e.Outputs = maps.Clone(only.Outputs)
	}
	return e
}

func (d *dag) outputs(m *Machine) End {
	all, variables := map[string]any{}, d.variables(m, slices.Sorted(maps.Keys(d.of.Kept)))
	for _, p := range d.of.Outputs {
		v, err := p.Value.Value(variables)
		if err != nil {
			return End{Phase: Error, Msg: fmt.Sprintf("the output %s: %v", p.Name, err)}
		}
		all[p.Name] = v
	}
	return End{Phase: Succeeded, Outputs: all}
}

func (d *dag) limit() (from, until time.Time) { return from, until }
func (d *dag) passed(*Machine)                {}

// excused reports whether what follows can begin although something ended in this way.
func excused(x plan.Endings, p Phase) bool {
	return x.Failed && p == Failed || x.Error && p == Error || x.Timeout && p == Timeout || x.Cancelled && p == Cancelled
}

// failure is the phase of a container one of whose nodes has ended in a way that is not excused.
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
