package plan

import (
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
)

// graph reads the nodes and transitions of a definition into its only template.
func (r *reader) graph(o *object) {
	g := &Graph{Initial: o.name("initial"), Output: o.value("output", ofGraph)}
	x := &Template{Name: "graph", Graph: g}
	r.places[x], r.places[g] = o.get("nodes"), o.t
	r.d.Entry, r.d.Templates[x.Name] = x.Name, x
	actions := r.actions(o)
	for _, t := range o.list("nodes") {
		g.Nodes = append(g.Nodes, r.node(t, actions))
	}
	if list, ok := o.get("nodes").value.([]*tree); ok && len(list) == 0 {
		r.at(o.get("nodes"), "is empty: a graph has at least one node")
	}
	for _, t := range o.list("transitions") {
		g.Transitions = append(g.Transitions, r.transition(t))
	}
}

// listedAction is an action of a definition's list.
type listedAction struct {
	id, version string
	action      *Action
	times       Times
	retry       Retry
}

// actions are the actions of a definition: those with an id, in the order of the file.
type actions struct {
	ids  []string
	byID map[string]*oneID
}

// oneID is the actions with an id.
type oneID struct {
	last      *listedAction
	byVersion map[string]*listedAction
}

func (r *reader) actions(of *object) *actions {
	list := &actions{byID: map[string]*oneID{}}
	for _, t := range of.list("actions") {
		o := r.object(t, "action")
		o.need("id", "an action has a name")
		a := &listedAction{id: o.name("id"), version: o.text("version"), retry: r.retry(o)}
		same := list.byID[a.id]
		if same == nil {
			same = &oneID{byVersion: map[string]*listedAction{}}
			list.byID[a.id] = same
			list.ids = append(list.ids, a.id)
		}
		if same.byVersion[a.version] != nil {
			o.fault("two actions have the id %s and the version %q", a.id, a.version)
		}
		same.last, same.byVersion[a.version] = a, a
		if o.need("kind", "say what the action does") != nil {
			kind := o.kind("kind")
			update := kind == updateContext
			if update {
				kind = Set
			}
			implementation := o.get("implementation")
			if implementation == nil {
				implementation = t.with("implementation", []member{})
			}
			o := r.object(implementation, "implementation")
			a.action = r.action(o, kind, ofGraph)
			if values := o.get("values"); values != nil && kind == Set {
				r.checkPathsOfState(values, update)
			}
		}
		if t := o.get("execution"); t != nil {
			e := r.object(t, "execution")
			a.times = timesOf(e.ms("timeout_ms"), e.word("on_timeout"))
		}
	}
	return list
}

// checkPathsOfState checks what a node writes into the state of its run. No value is within another one, so that their order does not matter.
func (r *reader) checkPathsOfState(t *tree, update bool) {
	members, _ := t.value.([]member)
	written := map[string]bool{}
	for _, m := range members {
		written[m.name] = true
	}
	for _, m := range members {
		inState := strings.HasPrefix(m.name, "state.")
		if update && !inState {
			r.at(m.value, "update_context writes the state of a run: name what it writes state.%s", clip.Text(m.name, quoted))
		}
		if inState {
			name := *m.value
			name.value = m.name
			r.path(&name, "state")
		}
		for i, c := range m.name {
			if c == '.' && inState && written[m.name[:i]] && strings.HasPrefix(m.name[:i], "state.") {
				r.at(m.value, "is within %s, which is written too: write one of them", m.name[:i])
				break
			}
		}
	}
}

// timesOf returns the limits of a node or an action of a graph: one clock for an attempt and for its time in line.
func timesOf(ms Span, onTimeout string) Times {
	return Times{Attempt: ms, Line: ms, Said: onTimeout != "", Retries: onTimeout == "retry"}
}

func (r *reader) node(t *tree, actions *actions) *Call {
	o := r.object(t, "node")
	o.need("id", "a node has a name")
	c := &Call{Name: o.nodeName("id"), Inputs: r.given(o, ofGraph), Times: r.times(o), Retry: r.retry(o), Excuses: r.endings(o)}
	r.places[c] = t
	if o.need("action_id", "name what the node does") == nil {
		return c
	}
	action := r.find(o, actions)
	if action == nil {
		return c
	}
	c.Action = action.action
	c.Times = c.Times.Over(action.times)
	if o.get("retry") == nil {
		c.Retry = action.retry
	}
	if !c.Times.Said {
		c.Times.Said = true // a graph says fail if it says nothing
	}
	return c
}

// Over returns the times, with other as the default of each field.
func (t Times) Over(other Times) Times {
	t.Total, t.Attempt, t.Line = t.Total.Over(other.Total), t.Attempt.Over(other.Attempt), t.Line.Over(other.Line)
	if !t.Said {
		t.Said, t.Retries = other.Said, other.Retries
	}
	if t.Adapt == (Adapt{}) {
		t.Adapt = other.Adapt
	}
	return t
}

// find returns the action of a node: the one with its version, or the last one with its id.
func (r *reader) find(o *object, actions *actions) *listedAction {
	id, version := o.name("action_id"), o.text("action_version")
	same := actions.byID[id]
	switch {
	case id == "":
		return nil
	case same == nil:
		r.unknown(o.get("action_id"), "action", id, actions.ids)
		return nil
	case version == "":
		return same.last
	case same.byVersion[version] == nil:
		r.at(o.get("action_version"), "the action %s has no version %q", id, clip.Text(version, quoted))
	}
	return same.byVersion[version]
}

func (r *reader) transition(t *tree) *Transition {
	o := r.object(t, "transition")
	o.need("from", "name the node that it leaves")
	o.need("to", "name the node to which it leads")
	x := &Transition{ID: o.name("id"), From: o.name("from"), To: o.name("to"), Condition: o.expression("condition", ofGraph)}
	r.places[x] = t
	if t := o.get("fan_out"); t != nil {
		f := r.object(t, "fan_out")
		f.only("spawn_count", "items")
		x.FanOut = &FanOut{Count: f.number("spawn_count"), Items: f.value("items", ofGraph)}
		if f.get("spawn_count") == nil && f.get("items") == nil {
			f.fault("spawn_count and items are missing: say how many tokens it makes")
		}
		if x.ID == "" {
			o.fault("id is missing: a fan-out has a name, so that its tokens can meet again")
		}
	}
	if t := o.get("synchronization"); t != nil {
		x.Meet = r.meeting(r.object(t, "synchronization"))
	}
	return x
}

func (r *reader) meeting(o *object) *Meeting {
	o.only("timeout", "timeout_ms")
	o.need("sibling_group", "name the transition that has made the tokens")
	m := &Meeting{Group: o.name("sibling_group"), Timeout: o.span("timeout").Over(o.ms("timeout_ms")),
		Proceed: o.word("on_timeout") == "proceed_with_available"}
	r.places[m] = o.t
	if t := o.need("strategy", "say how many tokens must complete"); t != nil {
		r.strategy(t, m)
	}
	m.Merge = Merge{Strategy: "append", Source: []string{"output"}, Target: []string{"results"}}
	if t := o.get("merge"); t != nil {
		x := r.object(t, "merge")
		if word := x.word("strategy"); word != "" {
			m.Merge.Strategy = word
		}
		if t := x.get("source"); t != nil {
			m.Merge.Source = r.path(t, "_branch.output")
		}
		if t := x.get("target"); t != nil {
			m.Merge.Target = r.path(t, "state")
		}
	}
	return m
}

func (r *reader) strategy(t *tree, m *Meeting) {
	switch v := t.value.(type) {
	case string:
		switch v {
		case "all":
			return
		case "any":
			m.Any = true
			return
		}
	case []member:
		if len(v) == 1 && v[0].name == "m_of_n" {
			if i, ok := v[0].value.whole(); ok && i >= 1 && i <= maxNodes {
				m.M = int(i)
				return
			}
			r.at(v[0].value, "must be a whole number from 1 to %d", maxNodes)
			return
		}
	}
	r.at(t, `must be "all", "any" or {"m_of_n": number}`)
}
