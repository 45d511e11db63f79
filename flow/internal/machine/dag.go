package machine

import (
	"fmt"
	"maps"

	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// dag starts each node of a DAG when the nodes before it have ended.
type dag struct {
	Ended map[string]*End `json:"ended,omitempty"`

	of    *plan.DAG
	left  map[string]int // how many of a node's dependencies have not ended; a node that has begun is not in it
	after map[string][]*plan.Call
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
	d.of, d.left, d.after = x.DAG, map[string]int{}, map[string][]*plan.Call{}
	begun := map[string]bool{}
	for _, c := range s.Calls {
		begun[c.Node] = true
	}
	for _, c := range d.of.Nodes {
		for _, before := range c.After {
			d.after[before] = append(d.after[before], c)
			if d.Ended[before] == nil {
				d.left[c.Name]++
			}
		}
		if begun[c.Name] || d.Ended[c.Name] != nil {
			delete(d.left, c.Name)
		}
	}
	return d
}

func (d *dag) begin(m *Machine) {
	for _, c := range d.of.Nodes {
		if len(c.After) == 0 && d.Ended[c.Name] == nil && !m.state.Over {
			m.start(c, c.Name, m.variables())
		}
	}
}

func (d *dag) ended(m *Machine, node string, e End) {
	c := d.of.Node(node)
	if e.Phase != Succeeded && !excused(c.Excuses, e.Phase) {
		m.end(End{Phase: failure(e.Phase), Code: e.Code, Msg: fmt.Sprintf("node %s: %s%s", node, e.Phase, withColon(e.Msg))})
		return
	}
	d.Ended[node] = &e
	for _, next := range d.after[node] {
		if d.left[next.Name]--; d.left[next.Name] == 0 && !m.state.Over {
			delete(d.left, next.Name)
			m.start(next, next.Name, d.variables(m))
		}
	}
	if len(d.Ended) == len(d.of.Nodes) {
		m.end(d.outcome(m))
	}
}

// variables returns what the expressions of a node can read.
func (d *dag) variables(m *Machine) map[string]any {
	tasks := map[string]any{}
	for name, e := range d.Ended {
		tasks[name] = e.variables()
	}
	all := m.variables()
	all["tasks"] = tasks
	return all
}

// variables returns an end as expressions read it.
func (e *End) variables() map[string]any {
	outputs := map[string]any{"parameters": e.Outputs, "result": e.Result}
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
	for _, c := range d.of.Nodes {
		if len(d.after[c.Name]) == 0 {
			only = d.Ended[c.Name]
			last[c.Name] = only.Outputs
		}
	}
	e := End{Phase: Succeeded, Outputs: last}
	if len(last) == 1 {
		e.Outputs = maps.Clone(only.Outputs)
	}
	return e
}

func (d *dag) outputs(m *Machine) End {
	all, variables := map[string]any{}, d.variables(m)
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
