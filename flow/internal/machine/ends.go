package machine

import (
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Expressions of a token read the ends of nodes by nodes.NAME: the newest end in the token's own
// branch; without one, the newest end in the branch around it, and so on. They never read ends of
// another branch. When the tokens of a fan-out have met, or have all ended, the last end of each
// node within it belongs to the branch around it.

// readable returns the ends of nodes that the expressions of a token can read.
func (g *graph) readable(fan, index int) map[string]any {
	nodes := map[string]any{}
	for {
		f := g.Fans[fan]
		if s := f.Siblings[index]; s != nil {
			for name, e := range s.Ends {
				if nodes[name] == nil {
					nodes[name] = e.variables()
				}
			}
		}
		if fan == 0 {
			return nodes
		}
		fan, index = f.Outer, f.Branch.Index
	}
}

// keep stores the end of a node in its branch, and in all fan-outs around it, which pass it on when
// they are over.
func (g *graph) keep(t *token, e *End) {
	if !g.of.Kept(t.Node) {
		return // no expression reads it
	}
	g.set(t.Fan, t.Branch.Index, t.Node, e)
	for id := t.Fan; id != 0; id = g.Fans[id].Outer {
		f := g.Fans[id]
		if f.Last == nil {
			f.Last = map[string]*End{}
		}
		f.Last[t.Node] = e
	}
}

// set stores an end in a branch, if something can read it there.
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

// leave passes the ends of a completed fan-out to the branch around it.
func (g *graph) leave(f *fan) {
	for node, e := range f.Last {
		g.set(f.Outer, f.Branch.Index, node, e)
	}
	f.Last = nil
}

// late reports whether the siblings of a fan-out, or of a fan-out around it, have already met. The
// remaining tokens of such a fan-out have no further effect. They are only counted when their nodes
// end.
func (g *graph) late(of int) bool {
	for ; of != 0; of = g.Fans[of].Outer {
		if g.Fans[of].Fired {
			return true
		}
	}
	return false
}

// region is the part of a graph that tokens of a fan-out can reach before they meet.
type region struct {
	read    map[string]bool // nodes whose ends are read there
	longest time.Duration   // the longest time of a node
}

func (g *graph) region(transition string) region {
	r, cached := g.regions[transition]
	if !cached {
		nodes, readNodes := g.of.Within(transition)
		r = region{readNodes, g.of.Longest(nodes)}
		g.regions[transition] = r
	}
	return r
}

// reads reports whether the end of a node is read there.
func (r region) reads(node string) bool { return r.read[node] || r.read[plan.EveryNode] }
