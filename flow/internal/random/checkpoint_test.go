package random

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// steps are nodes that compute with what the nodes before them have yielded, each between two tasks. The last one yields all.
const steps = 4

// chain returns a DAG with random values in it.
func (g valuer) chain() string {
	var nodes []string
	add := func(name, before, does string) {
		after := ""
		if before != "" {
			after = `,"dependencies":["` + before + `"]`
		}
		nodes = append(nodes, fmt.Sprintf(`{"name":%q%s,"continueOn":{"error":true},%s}`, name, after, does))
	}
	reads := []string{"inputs.parameters.a", "tasks.t0.outputs.parameters.v", "tasks.t0.outputs.parameters"}
	add("t0", "", `"executor":{"type":"x"}`)
	for i := range steps {
		task, step := fmt.Sprint("t", i+1), fmt.Sprint("s", i)
		add(step, fmt.Sprint("t", i), `"executor":{"type":"set","values":`+asJSON(map[string]any{"v": g.compiled(1, reads...), "w": g.compiled(0, reads...)})+`}`)
		reads = append(reads, "tasks."+step+".outputs.parameters.v", "tasks."+step+".outputs.parameters", "tasks."+step+".msg", "tasks."+step+".outputs.result")
		add(task, step, `"executor":{"type":"x"},"inputs":{"parameters":[{"name":"v","value":`+asJSON(g.compiled(0, reads...))+`}]}`)
	}
	last := map[string]any{}
	for i, read := range reads {
		last[fmt.Sprint("r", i)] = "{{ " + read + " }}"
	}
	add("last", fmt.Sprint("t", steps), `"executor":{"type":"set","values":`+asJSON(last)+`}`)
	return `{"inputs":{"parameters":[{"name":"a","value":1}]},"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"a","value":1}]},"dag":{"tasks":[` + strings.Join(nodes, ",") + `]}}]}}`
}

// circle returns a graph whose tokens write random values into its state.
func (g valuer) circle() string {
	reads := []string{"inputs.parameters.a", "state.v", "state", "nodes.t.outputs.parameters.v", "nodes.set.outputs.parameters", "nodes.last.phase", "nodes.set.msg"}
	return fmt.Sprintf(`{"inputs":{"parameters":[{"name":"a","value":1}]},"initial":"t","nodes":[{"id":"t","action_id":"x","inputs":{"parameters":[{"name":"v","value":%s}]},"continueOn":{"error":true}},{"id":"set","action_id":"set","continueOn":{"error":true}},{"id":"last","action_id":"x"}],
		"actions":[{"id":"x","kind":"x"},{"id":"set","kind":"update_context","implementation":{"values":{"state.n":"{{ (state.n ?? 0) + 1 }}","state.v":%s,"state.w.v":%s}}}],
		"transitions":[{"from":"t","to":"set"},{"from":"set","to":"t","condition":"state.n < 4 and nodes.set.phase == 'Succeeded'"},{"from":"set","to":"last","condition":"nodes.set.phase != 'Succeeded'"}]}`,
		asJSON(g.compiled(0, reads...)), asJSON(g.compiled(1, reads...)), asJSON(g.compiled(0, reads...)))
}

// compiled returns a template whose types can fit.
func (g valuer) compiled(levels int, reads ...string) any {
	for {
		v := g.template(levels, reads...)
		if _, err := expr.CompileTemplate(v, []string{"inputs", "tasks", "state", "nodes"}); err == nil {
			return v
		}
	}
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// trace follows a definition, and returns all that it creates and how it ends. With checkpoints, the state is stored and read after each end.
func trace(d *plan.Definition, inputs map[string]any, result any, checkpoints bool) (string, error) {
	var log strings.Builder
	m, err := machine.New(d, d.Entry, inputs)
	if err != nil {
		return "", err
	}
	at := time.UnixMilli(1_800_000_000_000).UTC()
	for todo := m.Begin(at); ; {
		for _, c := range todo.Create {
			fmt.Fprintf(&log, "%s(%s)\n", c.Name, asJSON(c.Inputs))
		}
		if todo.End != nil {
			fmt.Fprintf(&log, "%s %q %s", todo.End.Phase, todo.End.Msg, asJSON(todo.End.Outputs))
			return log.String(), nil
		}
		if checkpoints {
			state, err := m.State()
			if err != nil {
				return "", err
			}
			if m, err = machine.Restore(d, inputs, state); err != nil {
				return "", err
			}
		}
		if len(todo.Create) != 1 {
			return "", fmt.Errorf("it creates %d tasks after\n%s", len(todo.Create), log.String())
		}
		at = at.Add(time.Second)
		e := machine.End{Phase: machine.Succeeded, At: at, Result: result}
		if object, is := result.(map[string]any); is {
			e.Outputs, e.Result = object, nil
		}
		todo = m.Follow(todo.Create[0].Name, e)
	}
}

// A run does the same whether it was continued from checkpoints or not, and each time that it is replayed.
func TestACheckpointChangesNoValue(t *testing.T) {
	seed := size.Seed()
	g := valuer{rand.New(rand.NewPCG(seed, 1))}
	rounds, succeeded := size.Times(100, 150, 400), 0
	for i := range rounds {
		text := g.chain()
		if i%2 == 1 {
			text = g.circle()
		}
		d, err := plan.Read([]byte(text))
		if err != nil {
			t.Fatalf("seed %d, round %d: %s\n%v", seed, i, text, err)
		}
		inputs, result := fmt.Sprintf(`{"a":%s}`, g.json(2)), fmt.Sprintf(`{"r":{"v":%s,"p":%s}}`, g.json(2), g.number())
		switch g.IntN(8) {
		case 0:
			result = `{"r":{}}`
		case 1:
			result = `{"r":` + g.json(1) + `}`
		}
		var first string
		for n := range 5 {
			log, err := trace(d, decoded(t, inputs), decoded(t, result)["r"], n > 2)
			if err != nil {
				t.Fatalf("seed %d, round %d: %s\n%v", seed, i, text, err)
			}
			if n == 0 {
				first = log
			} else if log != first {
				t.Fatalf("seed %d, round %d: %s\nwith %s and %s\nfirst\n%s\nplay %d\n%s", seed, i, text, inputs, result, first, n, log)
			}
		}
		if strings.Contains(first, "\nSucceeded ") {
			succeeded++

		}
	}
	t.Logf("%d of %d succeed", succeeded, rounds)
	if succeeded < rounds/20 {
		t.Errorf("only %d of %d succeed", succeeded, rounds)
	}
}
