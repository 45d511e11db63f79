package random

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A definition is a tree of these. It is written as JSON for Curfew, and evaluated as it is.
type (
	template struct {
		name string
		dag  []*node
		loop *loop
		wrap *template // a call of it can be retried
	}
	node struct {
		name    string
		calls   *template // nil: a leaf
		after   []*node
		retries int
		always  bool // its retry has an expression: whatever the phase but Succeeded
		hangs   bool // a leaf that takes longer than its attempt may
		excused bool // its dependants run, however it ends
	}
	loop struct {
		body     node
		rounds   int
		items    bool // over a list, of so many at once; otherwise until an expression holds
		parallel int
	}
)

// generator makes random templates. Each has its own name.
type generator struct {
	*rand.Rand
	seed uint64
	all  []*template
}

func (g *generator) template(depth int) *template {
	t := &template{name: fmt.Sprintf("t%d", len(g.all))}
	g.all = append(g.all, t)
	switch n := g.IntN(10); {
	case n < 2 && depth > 0:
		t.wrap = g.template(depth - 1)
	case n < 5 && depth > 0:
		t.loop = &loop{rounds: 1 + g.IntN(4), items: g.IntN(2) == 0, parallel: 1 + g.IntN(3)}
		g.call(&t.loop.body, depth-1)
		t.loop.body.name = "round"
	default:
		for i := range 1 + g.IntN(4) {
			n := &node{name: fmt.Sprintf("n%d", i)}
			for _, before := range t.dag {
				if g.IntN(3) == 0 {
					n.after = append(n.after, before)
				}
			}
			g.call(n, depth)
			t.dag = append(t.dag, n)
		}
	}
	return t
}

func (g *generator) call(n *node, depth int) {
	n.excused = g.IntN(3) > 0
	if depth > 0 && g.IntN(3) == 0 {
		n.calls = g.template(depth - 1)
	} else {
		n.hangs = g.IntN(20) == 0
	}
	if n.calls == nil || n.calls.wrap != nil {
		n.retries, n.always = g.IntN(3), g.IntN(2) == 0
	}
}

// hangs is the limit of an attempt of a leaf that hangs.
const hangs = "60ms"

type object = map[string]any

// text writes the definition.
func (g *generator) text(id string, first *template) []byte {
	var templates []any
	for _, t := range g.all {
		x := object{"name": t.name, "inputs": object{"parameters": []any{object{"name": "in", "value": 0}}}}
		switch {
		case t.wrap != nil:
			x["task"] = object{"template": t.wrap.name, "inputs": parameter("in", "{{ inputs.parameters.in }}")}
		case t.loop != nil:
			x["loop"] = g.writeLoop(t.loop)
		default:
			var nodes []any
			var sum []string
			for _, n := range t.dag {
				in := []string{"inputs.parameters.in"}
				var names []string
				for _, before := range n.after {
					names = append(names, before.name)
					in = append(in, value(before))
				}
				call := g.writeCall(n, strings.Join(in, " + "))
				call["name"], call["dependencies"] = n.name, names
				if names == nil {
					delete(call, "dependencies")
				}
				nodes, sum = append(nodes, call), append(sum, value(n))
			}
			x["dag"], x["outputs"] = object{"tasks": nodes}, parameter("v", "{{ "+strings.Join(sum, " + ")+" }}")
		}
		templates = append(templates, x)
	}
	text, err := json.Marshal(object{"id": id, "timeout": "2m", "spec": object{"entrypoint": first.name, "templates": templates}})
	if err != nil {
		panic(err)
	}
	return text
}

func parameter(name string, value any) object {
	return object{"parameters": []any{object{"name": name, "value": value}}}
}

// value is an expression for the value of a node, 0 if it has none.
func value(n *node) string { return "(tasks." + n.name + ".outputs.parameters.v ?? 0)" }

func (g *generator) writeLoop(l *loop) object {
	body := g.writeCall(&l.body, "inputs.parameters.in + index")
	if !l.items {
		return object{"until": fmt.Sprintf("index >= %d", l.rounds-1), "limit": l.rounds + g.IntN(2), "task": body}
	}
	return object{"items": make([]int, l.rounds), "parallel": l.parallel, "task": body}
}

func (g *generator) writeCall(n *node, in string) object {
	call := object{"continueOn": object{"failed": n.excused, "error": n.excused, "timeout": n.excused, "cancelled": n.excused}}
	inputs := []any{object{"name": "in", "value": "{{ " + in + " }}"}}
	if n.calls != nil {
		call["template"] = n.calls.name
	} else {
		call["executor"] = object{"type": "leaf"}
		inputs = append(inputs, object{"name": "seed", "value": fmt.Sprint(g.seed)}, object{"name": "hangs", "value": n.hangs})
		if n.hangs {
			call["attempt_timeout"] = hangs
		}
	}
	call["inputs"] = object{"parameters": inputs}
	if n.retries > 0 {
		retry := object{"limit": n.retries}
		if n.always {
			retry["expression"] = "tasks." + n.name + ".phase != 'Succeeded'"
		}
		call["retry"] = retry
	}
	return call
}
