package machine

import (
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
	text := strings.Repeat("x", 600<<10)
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
			play(t, definition, map[string]any{"list": text}, "=Error: node a: Error: its inputs: the value has more than 1048576 bytes or 1000 levels, the limits")
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
	if end := m.Begin(time.Now()).End; end == nil || end.Phase != Error || !strings.Contains(end.Msg, "node n17: Error") || !strings.Contains(end.Msg, "more than 1048576 bytes") {
		t.Error("a node whose values have 2^40 bytes does not end with an error")
	}
}

// Many nodes that pass one large value make no state that is larger than a worker's memory.
func TestAStateIsBounded(t *testing.T) {
	pass := ""
	for i := range 200 {
		pass += fmt.Sprintf(`{"name":"n%d","executor":{"type":"set","values":{"v":"{{ inputs.parameters.list }}"}}},`, i)
	}
	d, err := plan.Read([]byte(strings.Replace(loopOf(``), `"loop":`, `"dag":{"tasks":[`+pass+`{"name":"x","executor":{"type":"x"}}]}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]bool{100 << 10: true, 1000 << 10: false} {
		m, err := New(d, d.Entry, map[string]any{"list": strings.Repeat("x", size)})
		if err != nil {
			t.Fatal(err)
		}
		m.Begin(time.Now())
		if state, err := m.State(); (err == nil) != want || err == nil && len(state) < 200*size || err != nil && !strings.Contains(err.Error(), "keeps more than 67108864 bytes") {
			t.Errorf("200 values of %d bytes: a state of %d bytes, %v", size, len(state), err)
		}
		end := m.Ended("x", End{Phase: Succeeded, At: time.Now()}).End
		if (end.Phase == Succeeded) != want || !want && end.Msg != "the outputs have more than 67108864 bytes" {
			t.Errorf("200 values of %d bytes: the DAG is %s %.100s", size, end.Phase, end.Msg)
		}
	}
}
