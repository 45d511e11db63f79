package plan

import (
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/flow/internal/expression"
)

// Node returns the node with a name, nil if it has none.
func (d *DAG) Node(name string) *Call {
	if d == nil {
		return nil
	}
	return d.byName[name]
}

// link notes which node awaits and which one reads which.
func (d *DAG) link() {
	d.Next, d.Reads, d.Readers, d.Kept, d.byName = map[string][]*Call{}, map[string][]string{}, map[string][]string{}, map[string]bool{}, map[string]*Call{}
	for _, c := range d.Nodes {
		if d.byName[c.Name] == nil {
			d.byName[c.Name] = c
		}
		for _, before := range c.After {
			d.Next[before] = append(d.Next[before], c)
		}
	}
	for _, c := range d.Nodes {
		var values []*expression.Template
		for _, p := range c.Inputs {
			values = append(values, p.Value)
		}
		if c.Action != nil {
			values = append(values, c.Action.Options)
		}
		d.Reads[c.Name] = d.readBy(values)
		for _, name := range d.Reads[c.Name] {
			d.Readers[name] = append(d.Readers[name], c.Name)
		}
		if len(d.Next[c.Name]) == 0 && d.Outputs == nil {
			d.Kept[c.Name] = true
		}
	}
	var values []*expression.Template
	for _, p := range d.Outputs {
		values = append(values, p.Value)
	}
	for _, name := range d.readBy(values) {
		d.Kept[name] = true
	}
}

// readBy returns the nodes that some values read. An expression that computes the name can read all.
func (d *DAG) readBy(values []*expression.Template) (all []string) {
	for _, v := range values {
		if v == nil {
			continue
		}
		for _, path := range v.Reads() {
			switch {
			case path[0] != "tasks":
			case len(path) == 1:
				return d.names()
			case !slices.Contains(all, path[1]):
				all = append(all, path[1])
			}
		}
	}
	return all
}

func (d *DAG) names() (all []string) {
	if d == nil {
		return nil
	}
	for _, c := range d.Nodes {
		all = append(all, c.Name)
	}
	return all
}

// checkDAG checks the nodes of a DAG, their dependencies, and what their expressions read.
func (r *reader) checkDAG(x *Template) {
	d, seen := x.DAG, map[string]*Call{}
	d.link()
	for _, c := range d.Nodes {
		if seen[c.Name] != nil && c.Name != "" {
			r.at(r.field(c, "name"), "two nodes have the name %s", c.Name)
		} else {
			seen[c.Name] = c
		}
		r.checkCall(x, c)
	}
	for _, c := range d.Nodes {
		for i, name := range c.After {
			t := r.field(c, "dependencies")
			if list, ok := t.value.([]*tree); ok && i < len(list) {
				t = list[i]
			}
			switch {
			case name == c.Name:
				r.at(t, "the node depends on itself")
			case seen[name] == nil:
				r.unknown(t, "node", name, d.names())
			}
		}
	}
	if r.checkCycles(d, seen) {
		return
	}
	for _, p := range d.Outputs {
		all := map[string]bool{}
		for _, c := range d.Nodes {
			all[c.Name] = true
		}
		r.checkReads(x, r.field(x, "outputs"), p.Value, all)
	}
	ended := map[string]map[string]bool{}
	for _, c := range d.Nodes {
		known := d.before(c.Name, seen, ended)
		for _, p := range c.Inputs {
			r.checkReads(x, r.field(c, "inputs"), p.Value, known)
		}
		if c.Action != nil {
			r.checkReads(x, r.places[c.Action], c.Action.Options, known)
		}
	}
}

// before returns the nodes that have ended before a node begins. The DAG has no cycles.
func (d *DAG) before(name string, nodes map[string]*Call, found map[string]map[string]bool) map[string]bool {
	if found[name] != nil {
		return found[name]
	}
	all := map[string]bool{}
	found[name] = all
	if c := nodes[name]; c != nil {
		for _, dependency := range c.After {
			all[dependency] = true
			for other := range d.before(dependency, nodes, found) {
				all[other] = true
			}
		}
	}
	return all
}

// checkCycles finds nodes that await each other. It reports whether there are any.
func (r *reader) checkCycles(d *DAG, nodes map[string]*Call) (any bool) {
	const under, done = 1, 2
	state := map[string]int{}
	var visit func(name string, from []string)
	visit = func(name string, from []string) {
		c := nodes[name]
		switch {
		case c == nil || state[name] == done:
			return
		case state[name] == under:
			i := slices.Index(from, name)
			if any = true; len(from)-i > 1 { // a node that depends on itself is reported already
				r.at(r.field(c, "dependencies"), "the nodes await each other: %s: use a loop template to repeat nodes", strings.Join(append(from[i:], name), " → "))
			}
			return
		}
		state[name] = under
		for _, dependency := range c.After {
			visit(dependency, append(from[:len(from):len(from)], name))
		}
		state[name] = done
	}
	for _, c := range d.Nodes {
		visit(c.Name, nil)
	}
	return any
}
