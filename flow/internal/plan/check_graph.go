package plan

import "slices"

func (g *Graph) Node(name string) *Call {
	if g == nil {
		return nil
	}
	for _, c := range g.Nodes {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (g *Graph) names() (all []string) {
	if g == nil {
		return nil
	}
	for _, c := range g.Nodes {
		all = append(all, c.Name)
	}
	return all
}

// checkGraph checks the nodes and transitions of a graph, and where its tokens meet.
func (r *reader) checkGraph(x *Template) {
	g := x.Graph
	g.link()
	for i, c := range g.Nodes {
		if c.Name != "" && slices.ContainsFunc(g.Nodes[:i], func(other *Call) bool { return other.Name == c.Name }) {
			r.at(r.field(c, "id"), "two nodes have the id %s", c.Name)
		}
		r.checkCall(x, c)
		for _, p := range c.Inputs {
			r.checkReads(x, r.field(c, "inputs"), p.Value, nil)
		}
		if c.Action != nil {
			r.checkReads(x, r.places[c.Action], c.Action.Options, nil)
		}
	}
	r.checkReads(x, r.field(g, "output"), g.Output, nil)
	for i, t := range g.Transitions {
		r.checkTransition(x, t, g.Transitions[:i])
	}
	r.checkMeetings(g)
	r.findInitial(g)
	r.checkReached(g)
	r.checkTokens(g)
	r.checkItself(g)
}

func (r *reader) checkTransition(x *Template, t *Transition, before []*Transition) {
	g := x.Graph
	for field, name := range map[string]string{"from": t.From, "to": t.To} {
		if name != "" && g.Node(name) == nil {
			r.unknown(r.field(t, field), "node", name, g.names())
		}
	}
	if t.ID != "" && slices.ContainsFunc(before, func(other *Transition) bool { return other.ID == t.ID }) {
		r.at(r.field(t, "id"), "two transitions have the id %s", t.ID)
	}
	if t.Condition != nil {
		r.checkPaths(x, r.field(t, "condition"), t.Condition.Reads(), nil)
	}
	if t.FanOut != nil {
		r.checkReads(x, r.field(t, "fan_out"), t.FanOut.Items, nil)
	}
	if t.Meet == nil || t.Meet.Group == "" {
		return
	}
	var fanOuts []string
	for _, other := range g.Transitions {
		if other.FanOut == nil {
			continue
		}
		fanOuts = append(fanOuts, other.ID)
		made, known := other.FanOut.made()
		if other.ID == t.Meet.Group && known && t.Meet.M > made {
			r.at(r.field(t.Meet, "strategy"), "%d of %d tokens can never complete: the transition %s makes %d", t.Meet.M, made, other.ID, made)
		}
	}
	if !slices.Contains(fanOuts, t.Meet.Group) {
		r.unknown(r.field(t.Meet, "sibling_group"), "fan-out", t.Meet.Group, fanOuts)
	}
}

// checkMeetings checks that the tokens of a fan-out meet at one place, which does nothing else.
func (r *reader) checkMeetings(g *Graph) {
	met := map[string]bool{}
	for _, t := range g.Transitions {
		if t.Meet == nil || t.Meet.Group == "" {
			continue
		}
		if t.FanOut != nil {
			r.at(r.places[t], "has fan_out and synchronization: lead the token that comes out of the synchronization to a node, and fan out behind it")
		}
		if met[t.Meet.Group] {
			r.at(r.field(t.Meet, "sibling_group"), "the tokens of %s meet at another transition already: lead both ways to one node, and its transition has the synchronization", t.Meet.Group)
		}
		met[t.Meet.Group] = true
	}
}

// checkReached finds nodes that no token can come to.
func (r *reader) checkReached(g *Graph) {
	if g.Node(g.Initial) == nil {
		return
	}
	reached, next := map[string]bool{g.Initial: true}, []string{g.Initial}
	for len(next) > 0 {
		from := next[0]
		next = next[1:]
		for _, t := range g.Transitions {
			if t.From == from && !reached[t.To] {
				reached[t.To] = true
				next = append(next, t.To)
			}
		}
	}
	for _, c := range g.Nodes {
		if c.Name != "" && !reached[c.Name] {
			r.at(r.places[c], "no way leads to the node from %s, where a run begins", g.Initial)
		}
	}
}

// findInitial sets the node with which a run begins, if the definition does not name it.
func (r *reader) findInitial(g *Graph) {
	if g.Initial != "" {
		if g.Node(g.Initial) == nil {
			r.unknown(r.field(g, "initial"), "node", g.Initial, g.names())
		}
		return
	}
	var first []string
	for _, c := range g.Nodes {
		if !slices.ContainsFunc(g.Transitions, func(t *Transition) bool { return t.To == c.Name }) {
			first = append(first, c.Name)
		}
	}
	if len(first) == 1 {
		g.Initial = first[0]
	} else if len(g.Nodes) > 0 {
		r.at(r.places[g], "%d nodes have no transition that leads to them, so it is not clear where a run begins: name it in initial", len(first))
	}
}

// checkItself finds a call of the definition itself that each run comes to, since no condition is before it.
func (r *reader) checkItself(g *Graph) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		c := g.Node(name)
		if c == nil || seen[name] {
			return
		}
		seen[name] = true
		if a := c.Action; a != nil && a.Type == WorkflowCall && a.Flow == r.d.ID && a.Flow != "" {
			r.at(r.places[c], "each run calls %s itself, without end: put a condition before it", a.Flow)
		}
		for _, t := range g.Transitions {
			if t.From == name && t.Condition == nil {
				visit(t.To)
			}
		}
	}
	visit(g.Initial)
}
