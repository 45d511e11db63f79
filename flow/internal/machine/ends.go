package machine

import (
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Expressions of a token read the ends of nodes by nodes.NAME: the newest end in the token's own branch; without one, the newest in the
// branch around it, and so on. They never read what another branch has left. When the tokens of a fan-out have met, or have all ended, what
// was last in each node within it belongs to the branch around it.

// read returns the ends of nodes as the expressions of a token read them.
func (g *graph) read(of, index int) map[string]any {
	nodes := map[string]any{}
	for {
		f := g.Fans[of]
		if s := f.Siblings[index]; s != nil {
			for name, e := range s.Ends {
				if nodes[name] == nil {
					nodes[name] = e.variables()
				}
			}
		}
		if of == 0 {
			return nodes
		}
		of, index = f.Outer, f.Branch.Index
	}
}

// keep notes the end of a node. The fan-outs around it note it too, for when they are over.
func (g *graph) keep(t *token, e *End) {
	if !g.of.Kept(t.Node) {
		return // nothing reads it
	}
	g.set(t.Fan, t.Branch.Index, t.Node, e)
	for of := t.Fan; of != 0; of = g.Fans[of].Outer {
		f := g.Fans[of]
		if f.Last == nil {
			f.Last = map[string]*End{}
		}
		f.Last[t.Node] = e
	}
}

// set notes an end in a branch, if something can read it there.
func (g *graph) set(of, index int, node string, e *End) {
	f := g.Fans[of]
	s := f.Siblings[index]
	if s == nil || of != 0 && !g.region(f.Transition).reads(node) {
		return
	}
	if s.Ends == nil {
		s.Ends = map[string]*End{}
	}
	s.Ends[node] = e
}

// leave hands the ends of a fan-out that is over to the branch around it.
func (g *graph) leave(f *fan) {
	for node, e := range f.Last {
		g.set(f.Outer, f.Branch.Index, node, e)
	}
	f.Last = nil
}

// late reports whether the siblings of the tokens of a fan-out have met without them, or those of a fan-out around it. Such tokens change
// nothing more: they are counted when what they execute has ended.
func (g *graph) late(of int) bool {
	for ; of != 0; of = g.Fans[of].Outer {
		if g.Fans[of].Fired {
			return true
		}
	}
	return false
}

// region is what tokens of a fan-out can come to before they meet.
type region struct {
	read    map[string]bool // the nodes whose ends are read there
	longest time.Duration   // that a node can take
}

func (g *graph) region(transition string) region {
	found, known := g.regions[transition]
	if !known {
		nodes, read := g.of.Within(transition)
		found = region{read, g.of.Longest(nodes)}
		g.regions[transition] = found
	}
	return found
}

// reads reports whether the end of a node is read there.
func (r region) reads(node string) bool { return r.read[node] || r.read[plan.EveryNode] }
