package random

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// graph is a random graph: a, whose token fans out to branches of some nodes, which meet before c.
type graph struct {
	branches int
	nodes    []*node // of each branch
	a, c     *node
}

func (g *generator) graph() *graph {
	x := &graph{branches: 1 + g.IntN(5), a: g.step("a"), c: g.step("c")}
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
	last := ""
	for _, n := range append(append([]*node{x.a}, x.nodes...), x.c) {
		call := g.writeCall(n, "(_branch.index ?? 0)")
		delete(call, "executor")
		call["id"], call["action_id"] = n.name, "leaf"
		transition := object{"from": last, "to": n.name}
		switch {
		case last == "a":
			transition["id"], transition["fan_out"] = "t", object{"spawn_count": x.branches}
		case n == x.c:
			transition["synchronization"] = object{"strategy": "all", "sibling_group": "t", "timeout_ms": nil, "on_timeout": "fail",
				"merge": object{"source": "_branch.output.v", "target": "state.r", "strategy": "keyed_by_branch"}}
		}
		if last != "" {
			transitions = append(transitions, transition)
		}
		nodes, last = append(nodes, call), n.name
	}
	text, err := json.Marshal(object{"id": id, "timeout_ms": 120_000, "nodes": nodes, "transitions": transitions,
		"actions": []any{object{"id": "leaf", "kind": "leaf"}}, "output": object{"v": "{{ state.r }}"}})
	if err != nil {
		panic(err)
	}
	return text
}

// graph evaluates a graph. A node that is excused yields nothing.
func (e *evaluator) graph(x *graph) end {
	if got := e.call(x.a, "", "", 0); got.phase != "Succeeded" && !x.a.excused {
		return end{phase: e.fail("", got.phase)}
	}
	merged, arrived := object{}, 0
	for i := range x.branches {
		var got end
		arrives := true
		for _, n := range x.nodes {
			got = e.call(n, "", "__b"+strconv.Itoa(i), float64(i))
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
	if arrived == 0 {
		return end{phase: "Failed"}
	}
	if got := e.call(x.c, "", "", 0); got.phase != "Succeeded" && !x.c.excused {
		return end{phase: e.fail("", got.phase)}
	}
	return end{"Succeeded", merged}
}
