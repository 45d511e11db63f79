package plan

import (
	"slices"

	"github.com/curfew-dev/curfew/internal/expr"
)

// Node returns the node with a name, or nil.
func (d *DAG) Node(name string) *Call {
	if d == nil {
		return nil
	}
	return d.byName[name]
}

// link notes which node awaits and which one reads which. It reports whether the DAG has few enough reads.
func (d *DAG) link() bool {
	d.Next, d.Reads, d.Readers, d.Kept, d.byName = map[string][]*Call{}, map[string][]string{}, map[string][]string{}, map[string]bool{}, map[string]*Call{}
	for _, c := range d.Nodes {
		d.all = append(d.all, c.Name)
	}
	for _, c := range d.Nodes {
		if d.byName[c.Name] == nil {
			d.byName[c.Name] = c
		}
		for _, dependency := range c.After {
			d.Next[dependency] = append(d.Next[dependency], c)
		}
	}
	reads := 0
	for _, c := range d.Nodes {
		var values []*expr.Template
		for _, p := range c.Inputs {
			values = append(values, p.Value)
		}
		if c.Action != nil {
			values = append(values, c.Action.Options)
		}
		d.Reads[c.Name] = d.readBy(values)
		if reads += len(d.Reads[c.Name]); reads > maxReads {
			return false
		}
		for _, name := range d.Reads[c.Name] {
			d.Readers[name] = append(d.Readers[name], c.Name)
		}
		if len(d.Next[c.Name]) == 0 && d.Outputs == nil {
			d.Kept[c.Name] = true
		}
	}
	var values []*expr.Template
	for _, p := range d.Outputs {
		values = append(values, p.Value)
	}
	for _, name := range d.readBy(values) {
		d.Kept[name] = true
	}
	return true
}

// maxReads is how many reads of one node by another a DAG can have. Only nodes that read all others come to so many.
const maxReads = 1_000_000

// readBy returns the nodes that some values read. An expression that computes the name can read all.
func (d *DAG) readBy(values []*expr.Template) (all []string) {
	seen := map[string]bool{}
	for _, v := range values {
		if v == nil {
			continue
		}
		for _, path := range v.Reads() {
			switch {
			case path[0] != "tasks":
			case len(path) == 1:
				return d.names()
			case !seen[path[1]]:
				seen[path[1]] = true
				all = append(all, path[1])
			}
		}
	}
	return all
}

func (d *DAG) names() []string {
	if d == nil {
		return nil
	}
	return d.all
}

// checkDAG checks the nodes of a DAG, their dependencies, and the paths that their expressions read.
func (r *reader) checkDAG(x *Template) {
	d := x.DAG
	if !d.link() {
		r.at(r.field(x, "dag"), "has nodes that read all of tasks, more than %d reads together: name the nodes that they read, as tasks.<name>", maxReads)
		return
	}
	for _, c := range d.Nodes {
		if d.byName[c.Name] != c && c.Name != "" {
			r.at(r.field(c, "name"), "two nodes have the name %s", c.Name)
		}
		r.checkCall(c)
		r.checkDependencies(d, c)
	}
	order, cyclic := r.checkCycles(d)
	if cyclic {
		return
	}
	for _, p := range d.Outputs {
		r.checkReads(x, p.Value, nil)
	}
	early := d.early(order)
	for _, c := range d.Nodes {
		r.checkOwn(x, c, early[c.Name])
	}
}

func (r *reader) checkDependencies(d *DAG, c *Call) {
	if len(c.After) == 0 {
		return
	}
	list, _ := r.field(c, "dependencies").value.([]*tree)
	for _, t := range list {
		switch name, _ := t.value.(string); {
		case name == "":
		case name == c.Name:
			r.at(t, "the node depends on itself")
		case d.byName[name] == nil:
			r.unknown(t, "node", name, d.names())
		}
	}
}

// early returns the nodes that each node reads and that may not have ended when it begins. order has each node behind those that it awaits.
//
// It follows the nodes that are read, 64 in a round: one bit for each that has ended before a node begins.
func (d *DAG) early(order []*Call) map[string]map[string]bool {
	sets := map[string]map[string]bool{}
	var read []string
	for _, c := range order {
		for _, name := range d.Reads[c.Name] {
			if d.byName[name] == nil || slices.Contains(c.After, name) {
				continue
			}
			if sets[c.Name] == nil {
				sets[c.Name] = map[string]bool{}
			}
			sets[c.Name][name] = true
			read = append(read, name)
		}
	}
	slices.Sort(read)
	for chunk := range slices.Chunk(slices.Compact(read), 64) {
		bits, endedBits := map[string]uint64{}, make(map[string]uint64, len(order))
		for i, name := range chunk {
			bits[name] = 1 << i
		}
		for _, c := range order {
			for _, dependency := range c.After {
				endedBits[c.Name] |= endedBits[dependency] | bits[dependency]
			}
			for name := range sets[c.Name] {
				if endedBits[c.Name]&bits[name] != 0 {
					delete(sets[c.Name], name)
				}
			}
		}
	}
	return sets
}

// checkCycles finds nodes that await each other. It returns the nodes, each behind those that it awaits, and whether some await each other.
func (r *reader) checkCycles(d *DAG) (order []*Call, cyclic bool) {
	s := &stack{state: map[string]state{}}
	dependencies := func(name string) []string {
		if c := d.byName[name]; c != nil {
			return c.After
		}
		return nil
	}
	for _, c := range d.Nodes {
		s.walk(c.Name, dependencies, func(name string) {
			if cyclic = true; s.length(name) > 1 { // a node that depends on itself is reported already
				r.at(r.field(d.byName[name], "dependencies"), "the nodes await each other: %s: use a loop template to repeat nodes", s.round(name))
			}
		}, func(name string) {
			if c := d.byName[name]; c != nil {
				order = append(order, c)
			}
		})
	}
	return order, cyclic
}
