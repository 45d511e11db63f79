package flow_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/worker"
)

// A number is the same in all replays, whoever has computed it and however it was written.
func TestNumbersAreTheSameAfterACheckpoint(t *testing.T) {
	s := newStage(t)
	s.w.HandleRaw("half", func(context.Context, []byte) ([]byte, error) { return []byte(`{"h":4.0,"e":1e3}`), nil })
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return nil, nil })
	for _, rounds := range []int{2, 45} {
		s.put(fmt.Sprintf(`{"id":"half","initial":"set","nodes":[{"id":"set","action_id":"set"},{"id":"half","action_id":"half"},{"id":"x","action_id":"x"},{"id":"count","action_id":"count"},{"id":"end","action_id":"end"}],
			"actions":[{"id":"x","kind":"x"},{"id":"half","kind":"half"},{"id":"set","kind":"update_context","implementation":{"values":{"state.h":"{{ 8 / 2 }}","state.n":0}}},
				{"id":"count","kind":"update_context","implementation":{"values":{"state.n":"{{ state.n + 1 }}"}}},
				{"id":"end","kind":"update_context","implementation":{"values":{"state.mods":["{{ state.h %% 3 }}","{{ nodes.half.outputs.parameters.h %% 3 }}","{{ nodes.half.outputs.parameters.e %% 3 }}"]}}}],
			"transitions":[{"from":"set","to":"half"},{"from":"half","to":"x"},{"from":"x","to":"count"},{"from":"count","to":"x","condition":"state.n < %d"},{"from":"count","to":"end","condition":"state.n >= %d"}]}`, rounds, rounds))
		id := s.enqueue("flow.half", "")
		s.drain()
		if r := s.get(id); string(r.Result) != fmt.Sprintf(`{"outputs":{"parameters":{"h":4,"mods":[1,1,1],"n":%d}}}`, rounds) {
			t.Errorf("after %d rounds the run is %s with %s%s", rounds, r.Status, r.Result, r.Error)
		}
		view, err := flow.Read(t.Context(), s.q, id, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range view.Nodes {
			if n.Phase != "Succeeded" {
				t.Errorf("after %d rounds, the node %s is shown as %s", rounds, n.Name, n.Phase)
			}
		}
	}
}

// The order of members and errors is the same in each replay.
func TestReplaysSeeOneOrder(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "x", func(_ context.Context, in any) (any, error) { return in, nil })
	s.put(`{"id":"keys","inputs":{"parameters":[{"name":"m"}]},"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"m"}]},
		"loop":{"items":"{{ keys(inputs.parameters.m) }}","task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"k","value":"{{ item }}"}]}}}}]}}`)
	s.put(dag("errors", `{"name":"n","executor":{"type":"set","values":{"c":"{{ int('c') }}","a":"{{ int('a') }}","b":"{{ int('b') }}","d":"{{ int('d') }}"}},"continueOn":{"error":true}},
		{"name":"x","dependencies":["n"],"executor":{"type":"x"},"inputs":{"parameters":[{"name":"msg","value":"{{ tasks.n.msg }}"}]}},{"name":"y","dependencies":["x"],"executor":{"type":"x"},"inputs":{"parameters":[{"name":"msg","value":"{{ tasks.n.msg }}"}]}}`))
	for range 4 {
		s.ended("keys", `{"parameters":{"m":{"z":1,"y":2,"x":3,"w":4,"v":5}}}`, "Succeeded", `[{"k":"v"},{"k":"w"},{"k":"x"},{"k":"y"},{"k":"z"}]`)
		s.ended("errors", "", "Succeeded", `int('a')`)
	}
}

// A number that no expression can compute with reaches tasks and results as it was written.
func TestNumbersBeyond64BitsAreKept(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return nil, nil })
	var seen []string
	s.w.HandleRaw("id", func(_ context.Context, payload []byte) ([]byte, error) {
		seen = append(seen, string(payload))
		return []byte(`{"id":340282366920938463463374607431768211455}`), nil
	})
	s.put(`{"id":"large","inputs":{"parameters":[{"name":"id"}]},"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"id"}]},"dag":{"tasks":[
		{"name":"a","executor":{"type":"id"},"inputs":{"parameters":[{"name":"id","value":"{{ inputs.parameters.id }}"},{"name":"lit","value":18446744073709551616}]}},
		{"name":"many","dependencies":["a"],"template":"many"},
		{"name":"sum","dependencies":["many"],"executor":{"type":"set","values":{"v":"{{ inputs.parameters.id + 1 }}"}},"continueOn":{"error":true}},
		{"name":"z","dependencies":["sum"],"executor":{"type":"set","values":{"in":"{{ inputs.parameters.id }}","out":"{{ tasks.a.outputs.parameters.id }}","text":"n{{ inputs.parameters.id }}","msg":"{{ tasks.sum.msg }}"}}}]}},
		{"name":"many","loop":{"items":` + `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]` + `,"task":{"executor":{"type":"x"}}}}]}}`)
	s.ended("large", `{"parameters":{"id":18446744073709551615}}`, "Succeeded",
		`{"in":18446744073709551615,"msg":"\"inputs.parameters.id + 1\" cannot be evaluated: at character 22: invalid operation: a number of more than 64 bits + int","out":340282366920938463463374607431768211455,"text":"n18446744073709551615"}`)
	if len(seen) != 1 || seen[0] != `{"id":18446744073709551615,"lit":18446744073709551616}` {
		t.Errorf("the task got %q", seen)
	}
}

// An answer that is as large as a result can be is refused in words of requests, and one that fits is a result.
func TestAnAnswerOfTheGreatestSize(t *testing.T) {
	s := newStage(t)
	size := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(strings.Repeat("x", size))) }))
	defer server.Close()
	s.put(dag("get", fmt.Sprintf(`{"name":"a","executor":{"type":"http_request","url":%q}},{"name":"b","dependencies":["a"],"executor":{"type":"set","values":{"n":"{{ len(tasks.a.outputs.parameters.body) }}"}}}`, server.URL)))
	size = s.q.MaxBytes() - 5<<10
	s.ended("get", "", "Succeeded", fmt.Sprintf(`{"n":%d}`, size))
	for _, size = range []int{s.q.MaxBytes(), s.q.MaxBytes() - 4<<10, s.q.MaxBytes() + 1} {
		s.ended("get", "", "Failed", "node a: Failed: the answer of "+server.URL)
	}
}
