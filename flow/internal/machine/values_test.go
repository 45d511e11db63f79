package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Expressions can read nodes that have not ended: all of them is nil.
func TestANodeThatHasNotEndedIsNil(t *testing.T) {
	all := func(node string) string {
		return strings.ReplaceAll("{{ [N.phase, N.code, N.msg, N.outputs.parameters, N.outputs.parameters.x, N.outputs.result, N.phase == nil, N.outputs.parameters == nil] }}", "N", node)
	}
	const empty = "[<nil> <nil> <nil> <nil> <nil> <nil> true true]"
	play(t, `{"initial":"a","nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"}],"actions":[{"id":"x","kind":"x"}],
		"transitions":[{"from":"a","to":"b","condition":"nodes.b.phase == 'Succeeded'"},{"from":"b","to":"a"}],"output":{"b":"`+all("nodes.b")+`","a":"{{ nodes.a.phase }}"}}`, nil,
		"+a", [2]string{"a Succeeded", "=Succeeded(a=Succeeded,b=" + empty + ")"})
	play(t, loopOf(`{"until":"last.phase == 'Succeeded'","limit":3,"task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"p","value":"`+all("last")+`"}]}}}`), nil,
		"+round__0(p="+empty+")", [2]string{"round__0 Succeeded", "=Succeeded"})
}

// An object without members stays one, and nil stays nil.
func TestAnEmptyObjectIsNotNil(t *testing.T) {
	play(t, flowOf(`{"name":"a","executor":{"type":"set","values":{}}},{"name":"b","dependencies":["a"],"executor":{"type":"x"}},
		{"name":"c","dependencies":["b"],"executor":{"type":"set","values":{"a":"is {{ tasks.a.outputs.parameters }}"}}}`), nil, "+b", [2]string{"b Succeeded", "=Succeeded(a=is {})"})
}

// An echo suspends or does not. What could mean either is an error.
func TestSuspendIsTrueOrFalse(t *testing.T) {
	const refused = "=Error: node a: Error: the input suspend of echo must be true or false: a text such as \"true\" is neither"
	for suspend, want := range map[string]string{
		`true`: "+a(suspend=true)", `"{{ 1 == 1 }}"`: "+a(suspend=true)", `false`: "=Succeeded(suspend=false)", `"{{ nil }}"`: "=Succeeded(suspend=<nil>)",
		`"true"`: refused, `1`: refused, `"{{ 1 }}"`: refused, `{}`: refused, `[true]`: refused,
	} {
		play(t, flowOf(`{"name":"a","executor":{"type":"echo"},"inputs":{"parameters":[{"name":"suspend","value":`+suspend+`}]}}`), nil, want)
	}
}

// A few nodes cannot make a value that is larger than a worker's memory.
func TestNodesCannotMakeALargeValue(t *testing.T) {
	text := strings.Repeat("x", 2400<<10)
	in := func(n int) (all string) {
		for i := range n {
			all += fmt.Sprintf(`,{"name":"p%d","value":"{{ inputs.parameters.list }}"}`, i)
		}
		return all
	}
	leaf := `{"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"list","value":1}]},"dag":{"tasks":[{"name":"a",%s}]}},
		{"name":"leaf","inputs":{"parameters":[{"name":"list"}` + in(2) + `]},"executor":{"type":"x"}}]}}`
	for what, definition := range map[string]string{
		"inputs":   fmt.Sprintf(leaf, `"executor":{"type":"x"},"inputs":{"parameters":[`+in(2)[1:]+`]}`),
		"defaults": fmt.Sprintf(leaf, `"template":"leaf","inputs":{"parameters":[{"name":"list","value":"{{ inputs.parameters.list }}"}]}`),
	} {
		t.Run(what, func(t *testing.T) {
			play(t, definition, map[string]any{"list": text}, "=Error: node a: Error: its inputs: the value has more than 4194304 bytes or 1000 levels, the limits")
		})
	}
	chain := `{"name":"n0","executor":{"type":"set","values":{"v":"{{ inputs.parameters.list }}"}}}`
	for i := 1; i < 40; i++ {
		chain += fmt.Sprintf(`,{"name":"n%d","dependencies":["n%d"],"executor":{"type":"set","values":{"v":["{{ tasks.n%d.outputs.parameters.v }}","{{ tasks.n%d.outputs.parameters.v }}"]}}}`, i, i-1, i-1, i-1)
	}
	d, err := plan.Read([]byte(strings.Replace(loopOf(``), `"loop":`, `"dag":{"tasks":[`+chain+`]}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(d, d.Entry, map[string]any{"list": []any{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	if end := m.Begin(time.Now()).End; end == nil || end.Phase != Error || !strings.Contains(end.Msg, "node n19: Error") || !strings.Contains(end.Msg, "more than 4194304 bytes") {
		t.Error("a node whose values have 2^40 bytes does not end with an error")
	}
}

// What a run keeps is bounded, whether its own nodes have yielded it, or its tasks.
func TestWhatARunKeepsIsBounded(t *testing.T) {
	const few, many = 300 << 10, 900 << 10 // bytes of a value; 100 of them are less and more than the bound
	nodes := func(does, after string) (all string) {
		for i := range 100 {
			all += fmt.Sprintf(`,{"name":"n%d",%s}`, i, strings.ReplaceAll(strings.ReplaceAll(does, "N", fmt.Sprint(i)), "BEFORE", after))
			after = fmt.Sprintf(`,"dependencies":["n%d"]`, i)
		}
		return all[1:]
	}
	set := `"executor":{"type":"set","values":{"v":"N{{ inputs.parameters.list }}"}}`
	reads := ""
	for i := range 100 {
		reads += fmt.Sprintf(`{{ len(tasks.n%d.outputs.parameters.v) }}`, i)
	}
	in := func(tasks string) string {
		return strings.Replace(loopOf(``), `"loop":`, `"dag":{"tasks":[`+tasks+`]}`, 1)
	}
	fan := func(kind, strategy string) string {
		return `{"inputs":{"parameters":[{"name":"list"}]},"initial":"a","nodes":[{"id":"a","action_id":"none"},{"id":"b","action_id":"` + kind + `"},{"id":"c","action_id":"none"}],
			"actions":[{"id":"x","kind":"x"},{"id":"none","kind":"update_context","implementation":{"values":{}}},{"id":"set","kind":"update_context","implementation":{"values":{"state.v":"{{ _branch.index }}{{ inputs.parameters.list }}"}}}],
			"transitions":[{"id":"t","from":"a","to":"b","fan_out":{"spawn_count":100}},{"from":"b","to":"c","synchronization":{"sibling_group":"t","strategy":` + strategy + `}}],"output":{"n":"{{ nodes.c.phase }}"}}`
	}
	for what, definition := range map[string]string{
		"nodes that wait for none":     in(nodes(set, "")),
		"nodes of which one reads all": in(nodes(set+"BEFORE", "") + `,{"name":"last","dependencies":["n99"],"executor":{"type":"set","values":{"v":"` + reads + `"}}}`),
		"a loop":                       loopOf(`{"items":` + strings.ReplaceAll(fmt.Sprint(make([]int, 100)), " ", ",") + `,"task":{` + set + `}}`),
		"tokens that meet":             fan("set", `"all"`),
		"tasks":                        in(nodes(`"executor":{"type":"x"}`, "")),
		"tokens that do not meet":      strings.Replace(fan("set", `"any"`), `,{"from":"b","to":"c","synchronization":{"sibling_group":"t","strategy":"any"}}`, `,{"from":"b","to":"c","condition":"false"}`, 1),
		"tasks whose tokens meet":      fan("x", `"all"`),
	} {
		for size, want := range map[int]Phase{few: Succeeded, many: Error} {
			d, err := plan.Read([]byte(definition))
			if err != nil {
				t.Fatal(what, err)
			}
			text := strings.Repeat("x", size)
			m, err := New(d, d.Entry, map[string]any{"list": text})
			if err != nil {
				t.Fatal(what, err)
			}
			todo := m.Begin(time.Now())
			for i := 0; todo.End == nil; i++ {
				next := todo.Create[i]
				todo.Add(m.Ended(next.Name, End{Phase: Succeeded, At: time.Now(), Outputs: map[string]any{"v": text}}))
			}
			if e := todo.End; e.Phase != want || want == Error && !strings.Contains(e.Msg, errKept.Error()) {
				t.Errorf("%s of %d bytes: it is %s: %.300s", what, size, e.Phase, e.Msg)
			}
		}
	}
}

// A state that is too large is not written.
func TestAStateIsBounded(t *testing.T) {
	d, err := plan.Read([]byte(flowOf(`{"name":"a","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 100)
	for i := range list {
		list[i] = strings.Repeat("x", 1<<20)
	}
	for n, want := range map[int]error{50: nil, 70: errKept} {
		m, err := New(d, d.Entry, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Begin(time.Now())
		m.Ended("a", End{Phase: Succeeded, At: time.Now(), Outputs: map[string]any{"v": list[:n]}})
		if state, err := m.State(); !errors.Is(err, want) || err == nil && len(state) < n<<20 {
			t.Errorf("with %d MiB: a state of %d bytes, %v", n, len(state), err)
		}
	}
}
