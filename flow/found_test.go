package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// ended runs a flow, and checks how it has ended.
func (s *stage) ended(id, payload, phase, want string) {
	s.t.Helper()
	run := s.enqueue("flow."+id, payload)
	s.drain()
	r := s.get(run)
	if got := string(r.Result) + r.Error; r.Phase() != phase || !strings.Contains(got, want) {
		s.t.Errorf("the run is %s with %s, want %s with %s", r.Phase(), got, phase, want)
	}
}

// A chain of runs that is too deep for the ids of tasks fails. It does not wait.
func TestRunsThatCallEachOtherEnd(t *testing.T) {
	s := newStage(t)
	call := func(id, other string) string {
		return fmt.Sprintf(`{"id":%q,"timeout":null,"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"n","executor":{"type":"workflow_call","workflow":%q}}]}}]}}`, id, other)
	}
	s.put(call("ra", "rb"))
	s.put(call("rb", "ra"))
	s.ended("ra", "", "Error", "its task cannot be created")
}

// A task that cannot be created is an end of its node, which continueOn can excuse.
func TestATaskThatCannotBeCreatedIsAnError(t *testing.T) {
	s := newStage(t)
	s.put(`{"id":"s","inputs":{"parameters":[{"name":"d"}]},"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"a","executor":{"type":"sleep","duration":"{{ inputs.parameters.d }}"},"continueOn":{"error":true}},
		{"name":"b","dependencies":["a"],"executor":{"type":"set","values":{"phase":"{{ tasks.a.phase }}","msg":"{{ len(tasks.a.msg) > 20 }}"}}}]}}]}}`)
	for _, d := range []string{`"0s"`, `0`, `0.5`, `-5`, `null`, `1e300`, `"soon"`, `[1]`} {
		s.ended("s", `{"parameters":{"d":`+d+`}}`, "Succeeded", `{"msg":true,"phase":"Error"}`)
	}
	for executor, want := range map[string]string{
		`{"type":"x"}`: `its inputs have 1200015 bytes, the limit is 1044480`,
		`{"type":"http_request","url":"http://127.0.0.1:1","body":["{{ inputs.parameters.d }}","{{ inputs.parameters.d }}"]}`: `its inputs have 1200043 bytes, the limit is 1044480`,
		`{"type":"workflow_call","workflow":"s"}`: `its inputs have 1200015 bytes, the limit is 1044480`,
	} {
		s.put(dagOf("large", `,"inputs":{"parameters":[{"name":"d"}]}`, `{"name":"a","executor":`+executor+`,"inputs":{"parameters":[{"name":"p","value":"{{ inputs.parameters.d }}"},{"name":"q","value":"{{ inputs.parameters.d }}"}]},"continueOn":{"error":true}},
			{"name":"b","dependencies":["a"],"executor":{"type":"set","values":{"msg":"{{ tasks.a.msg }}"}}}`, ""))
		s.ended("large", `{"parameters":{"d":"`+strings.Repeat("x", 600_000)+`"}}`, "Succeeded", want)
	}
}

// What a node writes into the state of a run changes nothing else, and numbers stay what they are, before and after a checkpoint.
func TestTheStateOfARunIsItsOwn(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return map[string]any{"n": 9007199254740993}, nil })
	for _, rounds := range []int{3, 45} {
		s.put(fmt.Sprintf(`{"id":"state","initial":"a","inputs":{"parameters":[{"name":"cfg"}]},
			"nodes":[{"id":"a","action_id":"set"},{"id":"loop","action_id":"x"},{"id":"n","action_id":"count"},{"id":"change","action_id":"change"}],
			"actions":[{"id":"x","kind":"x"},{"id":"set","kind":"update_context","implementation":{"values":{"state.cfg":"{{ inputs.parameters.cfg }}"}}},
				{"id":"count","kind":"update_context","implementation":{"values":{"state.n":"{{ (state.n ?? 0) + 1 }}","state.odd":"{{ (state.n ?? 0) %% 2 == 0 }}","state.large":"{{ nodes.loop.outputs.parameters.n }}"}}},
				{"id":"change","kind":"update_context","implementation":{"values":{"state.cfg.k":"changed"}}}],
			"transitions":[{"from":"a","to":"loop"},{"from":"loop","to":"n"},{"from":"n","to":"loop","condition":"state.n < %d"},{"from":"n","to":"change","condition":"state.n >= %d"}],
			"output":{"input":"{{ inputs.parameters.cfg.k }}","node":"{{ nodes.a.outputs.parameters['state.cfg'].k }}","state":"{{ state.cfg.k }}","large":"{{ state.large }}","text":"{{ string(inputs.parameters.cfg.i) }}","odd":"{{ state.odd }}"}}`, rounds, rounds))
		s.ended("state", `{"parameters":{"cfg":{"k":"first","i":1000000}}}`, "Succeeded", `{"input":"first","large":9007199254740993,"node":"first","odd":true,"state":"changed","text":"1000000"}`)
	}
}

// A node that yields no object has no parameters, and its text is its result.
func TestANodeCanYieldAText(t *testing.T) {
	s := newStage(t)
	s.w.HandleRaw("text", func(context.Context, []byte) ([]byte, error) { return []byte("plain <text>"), nil })
	s.put(`{"id":"text","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"part","template":"part"},{"name":"leaf","executor":{"type":"text"}},
		{"name":"out","dependencies":["part","leaf"],"executor":{"type":"set","values":{"part":"{{ tasks.part.outputs.parameters }}","leaf":"{{ tasks.leaf.outputs.result }}"}}}]}},
		{"name":"part","dag":{"tasks":[{"name":"a","executor":{"type":"text"}}]}}]}}`)
	s.ended("text", "", "Succeeded", `{"leaf":"plain <text>","part":{"value":"plain <text>"}}`)
}

// What is no object is a value of the rounds of a loop, and the value of what yields nothing else: a leaf, a wrapper, a loop, a DAG.
func TestAResultThatIsNoObjectIsAValue(t *testing.T) {
	for result, want := range map[string]string{`[1,null]`: `[1,null]`, `"text"`: `"text"`, `7`: `7`, `null`: ``, `plain`: `"plain"`,
		`{"outputs":{"parameters":{"v":1}},"more":2}`: ``} {
		t.Run(result, func(t *testing.T) {
			s := newStage(t)
			s.w.HandleRaw("x", func(context.Context, []byte) ([]byte, error) { return []byte(result), nil })
			one, item := `{"value":`+want+`}`, want
			switch {
			case result == "null":
				one, item = `{}`, `null`
			case want == "":
				one, item = `{"v":1}`, `{"v":1}`
			}
			of := func(id, template string) {
				s.put(`{"id":"` + id + `","spec":{"entrypoint":"main","templates":[{"name":"main",` + template + `},{"name":"leaf","executor":{"type":"x"}}]}}`)
			}
			of("leaf", `"executor":{"type":"x"}`)
			of("wrapper", `"task":{"template":"leaf"}`)
			of("dag", `"dag":{"tasks":[{"name":"a","template":"leaf"}]}`)
			of("until", `"loop":{"until":"true","limit":2,"task":{"executor":{"type":"x"}}}`)
			for _, id := range []string{"leaf", "wrapper", "dag", "until"} {
				s.ended(id, "", "Succeeded", `{"outputs":{"parameters":`+one+`}}`)
			}
			of("two", `"dag":{"tasks":[{"name":"a","template":"leaf"},{"name":"b","template":"leaf"}]}`)
			s.ended("two", "", "Succeeded", `{"outputs":{"parameters":{"a":`+item+`,"b":`+item+`}}}`)
			of("items", `"loop":{"items":[1,2],"task":{"executor":{"type":"x"}}}`)
			s.ended("items", "", "Succeeded", `{"outputs":{"parameters":{"results":[`+item+`,`+item+`]}}}`)
		})
	}
}

// A version that is put again does not take back the defaults of a newer one. A run with a version has the time of that version.
func TestEachVersionHasItsTime(t *testing.T) {
	s := newStage(t)
	text := func(version, timeout string) string {
		return `{"id":"v","version":"` + version + `","timeout":"` + timeout + `","on_timeout":"fail","nodes":[{"id":"a","action_id":"w"}],"actions":[{"id":"w","kind":"wait"}]}`
	}
	s.put(text("1", "1h"))
	s.put(text("2", "2h"))
	if again := s.put(text("1", "1h")); again.New {
		t.Errorf("Put again returns %+v", again)
	}
	for version, want := range map[string]time.Duration{"": 2 * time.Hour, "1": time.Hour, "2": 2 * time.Hour} {
		receipt, err := flow.Start(t.Context(), s.q, "v", nil, version, queue.Task{})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.get(receipt.ID); r.Deadline.Sub(r.CreatedAt) != want || r.Fields["on_deadline"] != "fail" {
			t.Errorf("a run of version %q has %v", version, r.Deadline.Sub(r.CreatedAt))
		}
	}
}

// Resume ends a wait for a signal too.
func TestResumeSettlesASignal(t *testing.T) {
	s := newStage(t)
	s.put(dag("sig", `{"name":"q","executor":{"type":"wait","signal":"go"}}`))
	id := s.enqueue("flow.sig", "")
	s.drain()
	if err := flow.Resume(t.Context(), s.q, id, "q", map[string]any{"by": "ann"}); err != nil {
		t.Fatal(err)
	}
	s.drain()
	if r := s.get(id); string(r.Result) != `{"outputs":{"parameters":{"by":"ann"}}}` {
		t.Errorf("the run is %s with %s%s", r.Status, r.Result, r.Error)
	}
}

// Reading a run with very many nodes ends with an error.
func TestAVeryLargeRunIsNotRead(t *testing.T) {
	s := newStage(t)
	s.put(`{"id":"huge","initial":"a","max_nodes":150000,"nodes":[{"id":"a","action_id":"x"}],"actions":[{"id":"x","kind":"set","implementation":{"values":{}}}],"transitions":[{"id":"f","from":"a","to":"a","fan_out":{"spawn_count":10}}]}`)
	id := s.enqueue("flow.huge", "")
	s.drain()
	_, err := flow.Read(t.Context(), s.q, id, false)
	if err == nil || !strings.Contains(err.Error(), "more than 100000 nodes") && !strings.Contains(err.Error(), "takes more than 10s") { // on a slow machine
		t.Errorf("Read returns %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := flow.Read(ctx, s.q, id, false); err == nil {
		t.Error("Read does not end with its context")
	}
}

// A node that says what follows a timeout is right, also if its kind has retries. A graph says fail if it says nothing.
func TestOnTimeoutOfANodeGoesBeforeThatOfItsKind(t *testing.T) {
	s := newStage(t)
	err := s.q.DefineKind(s.ctx, "slow", queue.Defaults{AttemptTimeout: 50 * time.Millisecond, MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry, Backoff: queue.Backoff{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(s.w, "slow", func(ctx context.Context, _ number) (number, error) { <-ctx.Done(); return number{}, ctx.Err() })
	node := `{"name":"n","executor":{"type":"slow"}%s}`
	for _, test := range []struct {
		text     string
		attempts int
	}{
		{dagOf("d1", "", fmt.Sprintf(node, ""), ""), 2},
		{dagOf("d2", "", fmt.Sprintf(node, `,"on_timeout":"fail"`), ""), 1},
		{dagOf("d3", "", fmt.Sprintf(node, `,"retry":{"limit":2}`), ""), 3},
		{`{"id":"g1","nodes":[{"id":"n","action_id":"a"}],"actions":[{"id":"a","kind":"slow"}]}`, 1},
		{`{"id":"g2","nodes":[{"id":"n","action_id":"a"}],"actions":[{"id":"a","kind":"slow","execution":{"on_timeout":"fail"}}]}`, 1},
		{`{"id":"g3","nodes":[{"id":"n","action_id":"a"}],"actions":[{"id":"a","kind":"slow","execution":{"on_timeout":"retry"},"retry":{"limit":2}}]}`, 3},
	} {
		id := s.enqueue("flow."+s.put(test.text).ID, "")
		s.sweepUntil("the run has ended", func() bool { return s.get(id).Status.Ended() })
		if r := s.get(id + ".n"); r.Retries+1 != test.attempts || r.TimeoutType != queue.TimeoutAttempt {
			t.Errorf("%s: %d attempts, %s, want %d", test.text, r.Retries+1, r.TimeoutType, test.attempts)
		}
	}
}
