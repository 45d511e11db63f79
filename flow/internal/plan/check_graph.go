package plan

// Node returns the node with a name, or nil.
func (g *Graph) Node(name string) *Call {
	if g == nil {
		return nil
	}
	return g.byName[name]
}

func (g *Graph) names() []string {
	if g == nil {
		return nil
	}
	return g.all
}

// checkGraph checks the nodes and transitions of a graph, and where its tokens meet.
func (r *reader) checkGraph(x *Template) {
	g, actions := x.Graph, map[*Action]bool{}
	g.link()
	for _, c := range g.Nodes {
		if c.Name != "" && g.byName[c.Name] != c {
			r.at(r.field(c, "id"), "two nodes have the id %s", c.Name)
		}
		r.checkCall(c)
		for _, p := range c.Inputs {
			r.checkReads(x, p.Value, nil)
		}
		if c.Action != nil && !actions[c.Action] { // nodes can have an action together
			actions[c.Action] = true
			r.checkReads(x, c.Action.Options, nil)
		}
	}
	r.checkReads(x, g.Output, nil)
	f := fansOf(g)
	for _, t := range g.Transitions {
		r.checkTransition(x, t, f)
	}
	r.checkMeetings(g)
	r.findInitial(g)
	r.checkReached(g)
	r.checkTokens(g)
}

// fans are the fan-outs of a graph.
type fans struct {
	names []string
	byID  map[string]*Transition
	seen  map[string]bool // the ids of transitions that were checked
}

func fansOf(g *Graph) *fans {
	f := &fans{byID: map[string]*Transition{}, seen: map[string]bool{}}
	for _, t := range g.Transitions {
		if t.FanOut != nil {
			f.names, f.byID[t.ID] = append(f.names, t.ID), t
		}
	}
	return f
}

func (r *reader) checkTransition(x *Template, t *Transition, f *fans) {
	g := x.Graph
	for _, end := range []struct{ field, name string }{{"from", t.From}, {"to", t.To}} {
		if end.name != "" && g.Node(end.name) == nil {
			r.unknown(r.field(t, end.field), "node", end.name, g.names())
		}
	}
	if t.ID != "" && f.seen[t.ID] {
		r.at(r.field(t, "id"), "two transitions have the id %s", t.ID)
	}
	f.seen[t.ID] = true
	if t.Condition != nil {
		r.checkPaths(x, r.field(t, "condition"), t.Condition.Reads(), nil)
	}
	if t.FanOut != nil {
		r.checkReads(x, t.FanOut.Items, nil)
	}
	if t.Meet == nil || t.Meet.Group == "" {
		return
	}
	fan := f.byID[t.Meet.Group]
	if fan == nil {
		r.unknown(r.field(t.Meet, "sibling_group"), "fan-out", t.Meet.Group, f.names)
	} else if tokens, ok := fan.FanOut.Made(); ok && t.Meet.M > tokens {
		r.at(r.field(t.Meet, "strategy"), "%d of %d tokens can never complete: the transition %s makes %d", t.Meet.M, tokens, fan.ID, tokens)
	}
}

// checkMeetings checks that the tokens of a fan-out meet at one place, which does nothing else.
func (r *reader) checkMeetings(g *Graph) {
	groups := map[string]bool{}
	for _, t := range g.Transitions {
		if t.Meet == nil || t.Meet.Group == "" {
			continue
		}
		if t.FanOut != nil {
			r.at(r.places[t], "has fan_out and synchronization: lead the token that comes out of the synchronization to a node, and fan out behind it")
		}
		if groups[t.Meet.Group] {
			r.at(r.field(t.Meet, "sibling_group"), "the tokens of %s meet at another transition already: lead both ways to one node, and its transition has the synchronization", t.Meet.Group)
		}
		groups[t.Meet.Group] = true
	}
}

// checkReached finds nodes that no token can come to.
func (r *reader) checkReached(g *Graph) {
	if g.Node(g.Initial) == nil {
		return
	}
	reached, next := map[string]bool{g.Initial: true}, []string{g.Initial}
	for len(next) > 0 {
		node := next[0]
		next = next[1:]
		for _, t := range g.leaving[node] {
			if !reached[t.To] {
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
	led := map[string]bool{}
	for _, t := range g.Transitions {
		led[t.To] = true
	}
	var first []string
	for _, c := range g.Nodes {
		if !led[c.Name] {
			first = append(first, c.Name)
		}
	}
	if len(first) == 1 {
		g.Initial = first[0]
	} else if len(g.Nodes) > 0 {
		r.at(r.places[g], "%d nodes have no transition that leads to them, so it is not clear where a run begins: name it in initial", len(first))
	}
}
