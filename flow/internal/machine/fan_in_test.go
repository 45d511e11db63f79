package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// fanIn returns a DAG whose last node reads n others, and two more that read the first of them.
func fanIn(t *testing.T, n int) *plan.Definition {
	var nodes, names, values []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"name":"n%d","executor":{"type":"x"}}`, i))
		names = append(names, fmt.Sprintf(`"n%d"`, i))
		values = append(values, fmt.Sprintf(`"{{ tasks.n%d.outputs.parameters.v }}"`, i))
	}
	nodes = append(nodes, `{"name":"early","executor":{"type":"x"},"dependencies":["n0"],"inputs":{"parameters":[{"name":"one","value":"{{ tasks.n0.outputs.parameters.v }}"}]}}`,
		fmt.Sprintf(`{"name":"all","executor":{"type":"x"},"dependencies":[%s,"early"],"inputs":{"parameters":[{"name":"sum","value":[%s]}]}}`, strings.Join(names, ","), strings.Join(values, ",")),
		`{"name":"again","executor":{"type":"x"},"dependencies":["n0"],"inputs":{"parameters":[{"name":"one","value":"{{ tasks.n0.outputs.parameters.v }}"}]}}`,
		`{"name":"last","executor":{"type":"x"},"dependencies":["all","again"]}`)
	d, err := plan.Read([]byte(flowOf(strings.Join(nodes, ","))))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// follow plays a fan-in of n nodes. Every so many ends the machine is stored and restored.
func follow(t *testing.T, d *plan.Definition, n, restored int) {
	m, err := New(d, d.Entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000).UTC()
	m.Begin(now)
	end := func(i int, name string) Steps {
		if i%restored == restored-1 {
			if m, err = Restore(d, nil, stateOf(t, m)); err != nil {
				t.Fatal(err)
			}
		}
		return m.Ended(name, End{Phase: Succeeded, At: now, Outputs: map[string]any{"v": "value"}})
	}
	for i := range n {
		if steps := end(i, fmt.Sprint("n", n-1-i)); i == n-1 && describe(steps) != "+early(one=value) +again(one=value)" {
			t.Fatalf("then follows %s", describe(steps))
		}
	}
	if state := string(stateOf(t, m)); strings.Count(state, "value") != n+2 { // and the inputs of early and again
		t.Errorf("before it is read, the state has %d values, want %d", strings.Count(state, "value"), n+2)
	}
	steps := end(n, "early")
	if len(steps.Create) != 1 || len(steps.Create[0].Inputs["sum"].([]any)) != n {
		t.Fatalf("then follows %+v", steps)
	}
	for _, v := range steps.Create[0].Inputs["sum"].([]any) {
		if v != "value" {
			t.Fatalf("the node reads %v", v)
		}
	}
	end(n+1, "all")
	end(n+2, "again")
	if state := string(stateOf(t, m)); strings.Contains(state, "value") {
		t.Errorf("values that nothing reads are kept: %s", state)
	}
}

func stateOf(t *testing.T, m *Machine) []byte {
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// A value is kept until each node that reads it has begun, and no longer.
func TestAValueIsKeptUntilItIsRead(t *testing.T) {
	for restored := range 5 {
		follow(t, fanIn(t, 10), 10, restored+1)
	}
}

// The end of a node costs the same, however many others one node waits for and reads.
func TestAWideFanInIsLinear(t *testing.T) {
	few, many := fanIn(t, 500), fanIn(t, 4000)
	measure := func(d *plan.Definition, n int) time.Duration {
		begun := time.Now()
		follow(t, d, n, n+9)
		return time.Since(begun)
	}
	var a, b time.Duration
	for range 3 { // another program can have the processor in one of them
		a, b = measure(few, 500), measure(many, 4000)
		t.Logf("500 nodes: %v, 4000 nodes: %v", a, b)
		// real time: both were measured in the same moment
		if b < 40*a {
			return
		}
	}
	t.Errorf("4000 nodes take %v, and 500 take %v: cubic is 512 times as long", b, a)
}
