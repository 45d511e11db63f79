package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// graph moves tokens from node to node. When the node of a token has ended, the token follows each
// transition whose condition holds.
type graph struct {
	State  map[string]any    `json:"state,omitempty"`
	Tokens map[string]*token `json:"tokens,omitempty"` // tokens that execute a node, by the key of their call
	Fans   map[int]*fan      `json:"fans,omitempty"`   // 0 is the run itself
	Fanned int               `json:"fanned,omitempty"` // fan-outs so far

	of      *plan.Graph
	regions map[string]region // cache, by the transitions of fan-outs
}

// token executes a node.
type token struct {
	Node   string `json:"node"`
	Fan    int    `json:"fan,omitempty"` // the fan-out that it belongs to
	Branch branch `json:"branch,omitzero"`

	key string // of its call, set when the call has ended
}

// branch is the place of a token in its fan-out.
type branch struct {
	Index int    `json:"index,omitempty"`
	Item  any    `json:"item,omitempty"`
	Path  string `json:"path,omitempty"` // the places in all fan-outs around it: 3-0 is the first token of the fan-out of token 3
}

func newGraph(x *plan.Template, s *state) *graph {
	g := s.Graph
	if g == nil {
		g = &graph{}
		s.Graph = g
	}
	if g.State == nil {
		g.State = map[string]any{}
	}
	if g.Tokens == nil {
		g.Tokens = map[string]*token{}
	}
	if g.Fans == nil {
		g.Fans = map[int]*fan{0: {Siblings: map[int]*sibling{0: {}}}}
	}
	g.of, g.regions = x.Graph, map[string]region{}
	return g
}

func (g *graph) begin(m *Machine) {
	g.Fans[0].add(0, 1)
	g.enter(m, g.of.Initial, 0, branch{})
}

// enter makes a token execute a node. The token is counted already.
func (g *graph) enter(m *Machine, node string, of int, b branch) {
	if m.state.Over {
		return
	}
	key := g.key(node, of, b)
	g.Tokens[key] = &token{Node: node, Fan: of, Branch: b}
	m.start(g.of.Node(node), key, g.variables(m, of, b, nil))
}

// key returns the key of a call. It depends only on the place of the token and the number of its
// visits to the node, not on other tokens, so that a replay gets the same key.
func (g *graph) key(node string, of int, b branch) string {
	key := node
	if b.Path != "" {
		key += "/b" + b.Path
	}
	if n := g.Fans[of].count(key); n > 1 {
		key += "/v" + strconv.Itoa(n)
	}
	return key
}

// variables returns the values that a token's expressions can read. output is the result of its
// node, nil before that has ended.
func (g *graph) variables(m *Machine, of int, b branch, output any) map[string]any {
	values := m.variables()
	values["state"], values["nodes"] = g.State, g.withNotEnded(g.readable(of, b.Index))
	values["_branch"] = map[string]any{"index": b.Index, "item": b.Item, "output": output}
	return values
}

func (g *graph) ended(m *Machine, key string, e End) {
	t := g.Tokens[key]
	t.key = key
	delete(g.Tokens, key)
	if g.late(t.Fan) {
		g.done(m, t.Fan, t.Branch.Index)
		return
	}
	c := g.of.Node(t.Node)
	if e.Phase != Succeeded && !excused(c.Excuses, e.Phase) {
		g.lose(m, t, fmt.Sprintf("node %s: %s%s", t.Node, e.Phase, withColon(e.Msg)), e)
		return
	}
	g.keep(t, &e)
	if c.Action != nil && c.Action.Type == plan.Set {
		for _, path := range slices.Sorted(maps.Keys(e.Outputs)) { // sorted, so that an object is set before its members
			if names := strings.Split(path, "."); names[0] == "state" && len(names) > 1 {
				g.State = write(g.State, names[1:], e.Outputs[path])
			}
		}
	}
	g.follow(m, t, e)
}

// follow moves a token on. If no transition takes it, it is done. If a transition ends the fan-out,
// the token follows no further one.
func (g *graph) follow(m *Machine, t *token, e End) {
	var taken []*plan.Transition
	variables := g.variables(m, t.Fan, t.Branch, e.yield())
	for _, x := range g.of.Leaving(t.Node) {
		holds := true
		if x.Condition != nil {
			var err error
			if holds, err = x.Condition.Condition(variables); err != nil {
				m.end(End{Phase: Error, Msg: fmt.Sprintf("the condition of the transition from %s to %s: %v", x.From, x.To, err)})
				return
			}
		}
		if holds {
			taken = append(taken, x)
		}
	}
	g.Fans[t.Fan].add(t.Branch.Index, len(taken))
	for _, x := range taken {
		switch {
		case m.state.Over:
			return
		case g.late(t.Fan):
			g.Fans[t.Fan].add(t.Branch.Index, -1)
		case x.FanOut != nil:
			g.fanOut(m, x, t, variables)
		case x.Meet != nil:
			g.meet(m, x, t, e)
		default:
			g.enter(m, x.To, t.Fan, t.Branch)
		}
	}
	g.done(m, t.Fan, t.Branch.Index)
}

// done counts down the tokens of a fan-out, when one has ended or has been replaced by others that
// are counted.
func (g *graph) done(m *Machine, of, index int) {
	g.Fans[of].add(index, -1)
	g.settle(m, of)
}

// settle continues after a fan-out has lost a token.
func (g *graph) settle(m *Machine, of int) {
	f := g.Fans[of]
	switch {
	case m.state.Over:
	case of == 0 && f.Live == 0:
		g.finish(m)
	case of == 0:
	case f.Fired && f.Live == 0:
		delete(g.Fans, of)
	case f.Fired:
	case f.meeting(g) != nil && !g.late(of):
		g.check(m, of)
	case f.Live == 0: // its tokens do not meet, so their ends belong to the branch around it
		delete(g.Fans, of)
		g.leave(f)
		g.done(m, f.Outer, f.Branch.Index)
	}
}

// lose handles a token whose node has not succeeded. If its siblings meet, the token is missing
// there. Otherwise the run fails.
func (g *graph) lose(m *Machine, t *token, msg string, e End) {
	for id := t.Fan; id != 0; id = g.Fans[id].Outer {
		f := g.Fans[id]
		if f.meeting(g) == nil {
			continue
		}
		if f.Failed == "" {
			f.Failed = msg
		}
		f.begin(m.at)
		g.done(m, t.Fan, t.Branch.Index)
		return
	}
	m.end(End{Phase: failure(e.Phase), Code: e.Code, Msg: msg})
}

// finish ends a run whose tokens are all done.
func (g *graph) finish(m *Machine) {
	outputs := maps.Clone(g.State)
	if g.of.Output != nil {
		v, err := g.of.Output.Value(g.variables(m, 0, branch{}, nil))
		object, ok := v.(map[string]any)
		switch {
		case err != nil:
			m.end(End{Phase: Error, Msg: fmt.Sprintf("the output of the flow: %v", err)})
			return
		case !ok:
			object = map[string]any{"value": v}
		}
		outputs = object
	}
	m.end(End{Phase: Succeeded, Outputs: outputs})
}

// yield returns the value of a node for its branch: its whole result if there is one, otherwise its
// parameters.
func (e *End) yield() any {
	if e.Result != nil {
		return e.Result
	}
	return e.Outputs
}

// write returns an object with a value at a path. It copies the objects on the path, because they
// can belong to others too, such as the results of nodes.
func write(object map[string]any, path []string, v any) map[string]any {
	changed := map[string]any{}
	maps.Copy(changed, object)
	if len(path) > 1 {
		inner, _ := object[path[0]].(map[string]any)
		v = write(inner, path[1:], v)
	}
	changed[path[0]] = v
	return changed
}

// limit returns the start and the end of the earliest time limit of a meeting.
func (g *graph) limit() (from, until time.Time) {
	if f := g.nearest(); f != nil {
		return f.First, f.until(g)
	}
	return from, until
}

// nearest returns the fan-out whose meeting is out of time first, nil if no limit has started.
func (g *graph) nearest() (first *fan) {
	for _, id := range slices.Sorted(maps.Keys(g.Fans)) {
		f := g.Fans[id]
		if g.late(id) {
			continue
		}
		if until := f.until(g); !until.IsZero() && (first == nil || until.Before(first.until(g))) {
			first = f
		}
	}
	return first
}

// proceeds reports whether the meeting that is out of time first then continues with the tokens that
// have arrived.
func (g *graph) proceeds() bool {
	f := g.nearest()
	return f != nil && f.meeting(g).Meet.Proceed && len(f.Arrived) > 0
}

func (g *graph) passed(m *Machine) {
	f := g.nearest()
	x := f.meeting(g)
	switch {
	case !x.Meet.Proceed:
		m.end(End{Phase: Failed, Msg: "Synchronization timeout exceeded"})
	case len(f.Arrived) == 0:
		m.end(End{Phase: Failed, Msg: "No siblings completed before timeout"})
	default:
		g.fire(m, f)
	}
}
