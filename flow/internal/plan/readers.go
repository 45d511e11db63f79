package plan

import "slices"

// link notes where the nodes of a graph are, what they read, and how its transitions lead on.
func (g *Graph) link() {
	g.byName = map[string]*Call{}
	g.leaving, g.meetings, g.reads, g.kept = map[string][]*Transition{}, map[string]*Transition{}, map[string][]string{}, map[string]bool{}
	for _, c := range g.Nodes {
		if g.byName[c.Name] == nil {
			g.byName[c.Name] = c
		}
		g.all = append(g.all, c.Name)
		for _, p := range c.Inputs {
			if p.Value != nil {
				g.note(c.Name, p.Value.Reads())
			}
		}
		if c.Action != nil && c.Action.Options != nil {
			g.note(c.Name, c.Action.Options.Reads())
		}
	}
	for _, x := range g.Transitions {
		g.leaving[x.From] = append(g.leaving[x.From], x)
		if x.Meet != nil {
			g.meetings[x.Meet.Group] = x
		}
		if x.Condition != nil {
			g.note(x.From, x.Condition.Reads())
		}
		if x.FanOut != nil && x.FanOut.Items != nil {
			g.note(x.From, x.FanOut.Items.Reads())
		}
	}
	if g.Output != nil {
		g.note("", g.Output.Reads())
	}
	g.Read = slices.DeleteFunc(slices.Clone(g.all), func(name string) bool { return !g.Kept(name) })
}

// note notes which ends the expressions of a node read, or those of the output if the name is "".
func (g *Graph) note(reader string, paths [][]string) {
	for _, path := range paths {
		if path[0] != "nodes" {
			continue
		}
		name := EveryNode
		if len(path) > 1 {
			name = path[1]
		}
		g.kept[name], g.reads[reader] = true, append(g.reads[reader], name)
	}
}

// EveryNode stands for all nodes, where an expression computes the name of the one that it reads.
const EveryNode = ""

// Leaving returns the transitions that leave a node, in the order of the definition.
func (g *Graph) Leaving(node string) []*Transition { return g.leaving[node] }

// Meeting returns the transition at which the tokens of a fan-out meet, nil if they do not.
func (g *Graph) Meeting(fanOut string) *Transition { return g.meetings[fanOut] }

// Kept reports whether anything reads the end of a node.
func (g *Graph) Kept(node string) bool { return g.kept[node] || g.kept[EveryNode] }

// Within returns the nodes that the tokens of a fan-out can come to before they meet, and the nodes whose ends are read there.
func (g *Graph) Within(fanOut string) (nodes, read map[string]bool) {
	nodes, read = map[string]bool{}, map[string]bool{}
	var next []string
	for _, x := range g.Transitions {
		if x.ID == fanOut && x.FanOut != nil {
			next = append(next, x.To)
		}
	}
	for len(next) > 0 {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		if nodes[node] {
			continue
		}
		nodes[node] = true
		for _, name := range g.reads[node] {
			read[name] = true
		}
		for _, x := range g.leaving[node] {
			if x.Meet == nil || x.Meet.Group != fanOut {
				next = append(next, x.To)
			}
		}
	}
	return nodes, read
}
