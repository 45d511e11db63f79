package random

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// graph is a random graph: a, whose token fans out to branches of some nodes, which meet before c. Each node of a branch reads the first node
// of its branch.
type graph struct {
	branches int
	needed   int     // of them to meet; 0: all that can
	nodes    []*node // of each branch
	a, c     *node
}

func (g *generator) graph() *graph {
	x := &graph{branches: 1 + g.IntN(5), a: g.step("a"), c: g.step("c")}
	if g.IntN(2) == 0 {
		x.needed = 1 + g.IntN(x.branches)
	}
	for i := range 1 + g.IntN(3) {
		x.nodes = append(x.nodes, g.step(fmt.Sprintf("b%d", i)))
	}
	return x
}

func (g *generator) step(name string) *node {
	return &node{name: name, retries: g.IntN(3), always: g.IntN(2) == 0, excused: g.IntN(2) == 0}
}

func (g *generator) writeGraph(id string, x *graph) []byte {
	var nodes, transitions []any
	var strategy, output any = "all", "{{ state.r }}"
	if x.needed > 0 {
		strategy = object{"m_of_n": x.needed}
	}
	if x.partial() {
		output = 1
	}
	last := ""
	for _, n := range append(append([]*node{x.a}, x.nodes...), x.c) {
		in := "(_branch.index ?? 0)"
		if last != "" && last != "a" && n != x.c {
			in += " + (nodes.b0.outputs.parameters.v ?? 0)"
		}
		call := g.writeCall(n, in)
		delete(call, "executor")
		call["id"], call["action_id"] = n.name, "leaf"
		transition := object{"from": last, "to": n.name}
		switch {
		case last == "a":
			transition["id"], transition["fan_out"] = "t", object{"spawn_count": x.branches}
		case n == x.c:
			transition["synchronization"] = object{"strategy": strategy, "sibling_group": "t", "timeout_ms": nil, "on_timeout": "fail",
				"merge": object{"source": "_branch.output.v", "target": "state.r", "strategy": "keyed_by_branch"}}
		}
		if last != "" {
			transitions = append(transitions, transition)
		}
		nodes, last = append(nodes, call), n.name
	}
	text, err := json.Marshal(object{"id": id, "timeout_ms": 120_000, "nodes": nodes, "transitions": transitions,
		"actions": []any{object{"id": "leaf", "kind": "leaf"}}, "output": object{"v": output}})
	if err != nil {
		panic(err)
	}
	return text
}

// partial reports whether some branches can come too late. Which ones is not known.
func (x *graph) partial() bool { return x.needed > 0 && x.needed < x.branches }

// graph evaluates a graph. A node that is excused yields nothing.
func (e *evaluator) graph(x *graph) end {
	if got := e.call(x.a, "", "", 0); got.phase != "Succeeded" && !x.a.excused {
		return end{phase: e.fail("", got.phase)}
	}
	merged, arrived := object{}, 0
	for i := range x.branches {
		var got end
		arrives := true
		in := float64(i)
		for at, n := range x.nodes {
			got = e.call(n, "", "__b"+strconv.Itoa(i), in)
			if v, is := got.value.(float64); is && at == 0 {
				in += v
			}
			if arrives = got.phase == "Succeeded" || n.excused; !arrives {
				break
			}
		}
		if arrives {
			arrived++
		}
		if arrives && got.value != nil {
			merged[strconv.Itoa(i)] = got.value
		}
	}
	if arrived < max(x.needed, 1) {
		return end{phase: "Failed"}
	}
	if got := e.call(x.c, "", "", 0); got.phase != "Succeeded" && !x.c.excused {
		return end{phase: e.fail("", got.phase)}
	}
	if x.partial() {
		maps.DeleteFunc(e.leaves, func(leaf, _ string) bool { return strings.Contains(leaf, "__b") })
		return end{"Succeeded", 1.0}
	}
	return end{"Succeeded", merged}
}
