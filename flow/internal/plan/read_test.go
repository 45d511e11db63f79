package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// faultyDefinition is a definition with its faults: the beginnings of the lines.
type faultyDefinition struct {
	name, text string
	faults     []string
}

var faultyDefinitions = []faultyDefinition{
	{"a template whose name has a new line", `{"spec":{"entrypoint":"main","templates":[{"name":"ma\n","dag":{"tasks":[{"name":"a","executor":{"type":"x"}}]}}]}}`,
		[]string{`line 1: spec.entrypoint: there is no template "main"`, `line 1: spec.templates[0].name: "ma\n" must be 1 to 60 of A-Z a-z 0-9 _ - and begin with a letter`}},
	{"no templates", `{"spec":{"entrypoint":"main","timeout":"30m","templates":[]}}`, []string{`line 1: spec.entrypoint: there is no template "main"`}},
	{"not a definition", `[1]`, []string{"line 1: the definition: must be an object, and is a list", "line 1: the definition: spec and nodes are missing"}},
	{"only a comment", "# later\n", []string{"line 1: the definition: the definition is empty"}},
	{"broken JSON", `{"spec": `, []string{"line 1: the definition: JSON is not valid: unexpected end of JSON input"}},
	{"twice", `{"id":"a","id":"b"}`, []string{"line 1: the definition: id is given twice"}},
	{"unknown fields", `{"spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"echo"},"timout":"1s"}],"timeuot":"3s"}}`,
		[]string{"line 1: spec.templates[0].timout: is not a field here: did you mean timeout?", "line 1: spec.timeuot: is not a field here: did you mean timeout?"}},
	{"a cycle", dag(`{"name":"a","executor":{"type":"echo"},"dependencies":["b"]},{"name":"b","executor":{"type":"echo"},"dependencies":["a"]}`),
		[]string{"line 1: spec.templates[0].dag.tasks[0].dependencies: the nodes await each other: a → b → a"}},
	{"itself", dag(`{"name":"a","executor":{"type":"echo"},"dependencies":["a"]}`), []string{"line 1: spec.templates[0].dag.tasks[0].dependencies[0]: the node depends on itself"}},
	{"an unknown template and dependency", dag(`{"name":"a","template":"mian","dependencies":["x"]}`),
		[]string{`line 1: spec.templates[0].dag.tasks[0].template: there is no template "mian": did you mean main?`, `line 1: spec.templates[0].dag.tasks[0].dependencies[0]: there is no node "x": there is a`}},
	{"two nodes of a name", dag(`{"name":"a","executor":{"type":"echo"}},{"name":"a","executor":{"type":"echo"}}`), []string{"line 1: spec.templates[0].dag.tasks[1].name: two nodes have the name a"}},
	{"a container that is retried", `{"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"a","template":"inner","retry":{"limit":1}}]}},{"name":"inner","dag":{"tasks":[{"name":"b","executor":{"type":"echo"}}]}}]}}`,
		[]string{"line 1: spec.templates[0].dag.tasks[0].retry: inner is a container, and only leaves are retried"}},
	{"a wrapper that is retried is good", `{"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"a","template":"again","retry":{"limit":1}}]}},{"name":"again","task":{"template":"inner"}},{"name":"inner","dag":{"tasks":[{"name":"b","executor":{"type":"echo"}}]}}]}}`, nil},
	{"on_timeout without a limit", dag(`{"name":"a","executor":{"type":"x"},"attempt_timeout":"1s","on_timeout":"retry"}`), []string{"line 1: spec.templates[0].dag.tasks[0].on_timeout: is retry, and there is no limit"}},
	{"durations", dag(`{"name":"a","executor":{"type":"x"},"timeout":10},{"name":"b","executor":{"type":"x"},"timeout":"-3s"},{"name":"c","executor":{"type":"x"},"timeout":"10 parsecs"},{"name":"d","executor":{"type":"x"},"timeout_ms":0.5}`),
		[]string{`line 1: spec.templates[0].dag.tasks[0].timeout: must be a text such as "30s"`, "line 1: spec.templates[0].dag.tasks[1].timeout: ", "line 1: spec.templates[0].dag.tasks[2].timeout: ", "line 1: spec.templates[0].dag.tasks[3].timeout_ms: must be a whole number of ms"}},
	{"both spellings", `{"timeout":"1s","timeout_ms":1000,"spec":{"entrypoint":"main","timeout":"1s","templates":[{"name":"main","executor":{"type":"echo"}}]}}`,
		[]string{"line 1: the definition: has timeout and timeout_ms", "line 1: spec.timeout: is given by the definition too"}},
	{"an expression that does not compile", dag(`{"name":"a","executor":{"type":"x"},"retry":{"limit":1,"expression":"tasks.a.phase =="}}`), []string{"line 1: spec.templates[0].dag.tasks[0].retry.expression: "}},
	{"an expression of another node", dag(`{"name":"a","executor":{"type":"x"},"retry":{"limit":1,"expression":"tasks.b.phase == 'Failed'"}}`), []string{"line 1: spec.templates[0].dag.tasks[0].retry.expression: "}},
	{"an input of a node that may not have ended", dag(`{"name":"a","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"},"inputs":{"parameters":[{"name":"p","value":"{{ tasks.a.outputs.parameters.q }}"},{"name":"r","value":"{{ tasks.c.phase }}"}]}}`),
		[]string{"line 1: spec.templates[0].dag.tasks[1].inputs.parameters[0].value: reads tasks.a, which may not have ended", `line 1: spec.templates[0].dag.tasks[1].inputs.parameters[1].value: there is no node "c": there is a, b`}},
	{"a template that calls itself", `{"spec":{"entrypoint":"main","templates":[{"name":"main","task":{"template":"main"}}]}}`, []string{"line 1: spec.templates[0]: the template calls itself without end: main → main"}},
	{"a flow that calls itself", `{"id":"f","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"a","executor":{"type":"workflow_call","workflow":"f"}}]}}]}}`, []string{"line 1: spec.templates[0].dag.tasks[0].executor: each run calls f itself, without end"}},
	{"a flow that calls itself through a template", `{"id":"f","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"a","template":"leaf"}]}},{"name":"leaf","executor":{"type":"workflow_call","workflow":"f"}}]}}`, []string{"line 1: spec.templates[1].executor: each run calls f itself, without end"}},
	{"a flow that calls itself as long as a list has items is good", `{"id":"f","spec":{"entrypoint":"main","inputs":{"parameters":[{"name":"l"}]},"templates":[{"name":"main","loop":{"items":"{{ inputs.parameters.l }}","task":{"executor":{"type":"workflow_call","workflow":"f"}}}}]}}`, nil},
	{"all texts of an executor", "spec:\n  entrypoint: main\n  templates:\n  - name: main\n    dag:\n      tasks:\n      - name: a\n        executor:\n          type: set\n          values:\n            x: '{{ 1 + }}'\n            a.b: ['{{ nope }}', '{{ tasks.b.phase }}']\n            z: '{{ inputs.parameters.z }}'\n",
		[]string{"line 11: spec.templates[0].dag.tasks[0].executor.values.x: ", "line 12: spec.templates[0].dag.tasks[0].executor.values.a.b[0]: "}},
	{"all reads of an executor", "spec:\n  entrypoint: main\n  templates:\n  - name: main\n    dag:\n      tasks:\n      - name: a\n        executor:\n          type: set\n          values:\n            a.b: [1, '{{ tasks.b.phase }}']\n            z: '{{ inputs.parameters.z }}'\n",
		[]string{`line 11: spec.templates[0].dag.tasks[0].executor.values.a.b[1]: there is no node "b": there is a`, `line 12: spec.templates[0].dag.tasks[0].executor.values.z: there is no input "z"`}},
	{"names that several have", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"a","action_id":"x"}],"actions":[{"id":"x","kind":"x"}],"transitions":[{"id":"f","from":"a","to":"c","fan_out":{"spawn_count":2}},{"id":"f","from":"a","to":"b","fan_out":{"spawn_count":2}},{"from":"a","to":"b","fan_out":{"spawn_count":2}},
		{"from":"b","to":"a","synchronization":{"strategy":"any","sibling_group":"g"}}]}`,
		[]string{"line 1: the definition: 0 nodes have no transition", "line 1: nodes[2].id: two nodes have the id a", `line 1: transitions[0].to: there is no node "c": there is a, b`, "line 1: transitions[1].id: two transitions have the id f",
			"line 1: transitions[2]: id is missing", `line 2: transitions[3].synchronization.sibling_group: there is no fan-out "g": there is f`}},
	{"what each run would fail at", `{"inputs":{"parameters":[{"name":"d","value":"0s"}]},"initial":"a","nodes":[{"id":"a","action_id":"zero"},{"id":"b","action_id":"long"},{"id":"c","action_id":"given"},{"id":"d","action_id":"ftp"},{"id":"e","action_id":"host"},{"id":"f","action_id":"good"}],
"actions":[{"id":"zero","kind":"sleep","implementation":{"duration":"0s"}},{"id":"long","kind":"sleep","implementation":{"duration":1e15}},{"id":"given","kind":"sleep","implementation":{"duration":"{{ inputs.parameters.d }}"}},
{"id":"ftp","kind":"http_request","implementation":{"url":"ftp://x"}},{"id":"host","kind":"http_request","implementation":{"url":"https:///x"}},{"id":"good","kind":"http_request","implementation":{"url":"http://{{ inputs.parameters.d }}/"}}],
"transitions":[{"from":"a","to":"b","condition":"1"},{"from":"b","to":"c","condition":"1 < 2"},{"from":"c","to":"d"},{"from":"d","to":"e"},{"from":"e","to":"f"}]}`,
		[]string{"line 2: actions[0].implementation.duration: cannot be the time of a sleep: ", "line 2: actions[1].implementation.duration: cannot be the time of a sleep: ",
			"line 3: actions[3].implementation.url: must be an address", "line 3: actions[4].implementation.url: must be an address", `line 4: transitions[0].condition: "1" yields 1, and must yield true or false`}},
	{"16 levels are good", nested(16), nil},
	{"17 levels", nested(17), []string{"line 1: spec.templates[0]: the tasks of a run are 17 deep within each other, the limit is 16"}},
	{"a graph", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x","on_timeout":"retry"}],"actions":[{"id":"x","kind":"llm_call"}],"transitions":[{"from":"a","to":"c"},{"id":"t","from":"a","to":"b","fan_out":{"spawn_count":3}},{"from":"b","to":"a","synchronization":{"strategy":{"m_of_n":4},"sibling_group":"t"}}],"initial":"a"}`,
		[]string{"line 1: nodes[1].on_timeout: is retry, and there is no limit", `line 1: transitions[0].to: there is no node "c": there is a, b`, "line 1: transitions[2].synchronization.strategy: 4 of 3 tokens can never complete"}},
	{"adaptive times", dag(`{"name":"a","executor":{"type":"echo"},"timeout":"adaptive","adaptive":{"least":"1s","most":"2s"}},{"name":"b","executor":{"type":"x"},"timeout":"adaptive"},
		{"name":"c","executor":{"type":"x"},"timeout":"1s","adaptive":{"least":"3s","most":"2s","factor":0}},{"name":"d","executor":{"type":"x"},"queue_timeout":"adaptive","adaptive":{"least":"1s"}}`),
		[]string{"line 1: spec.templates[0].dag.tasks[0]: has an adaptive time, and no worker runs it", "line 1: spec.templates[0].dag.tasks[1]: adaptive is missing",
			"line 2: spec.templates[0].dag.tasks[2].adaptive: belongs to a time that is adaptive", "line 2: spec.templates[0].dag.tasks[2].adaptive: least is longer than most", "line 2: spec.templates[0].dag.tasks[2].adaptive.factor: ",
			"line 2: spec.templates[0].dag.tasks[3].queue_timeout: cannot be adaptive", "line 2: spec.templates[0].dag.tasks[3].adaptive: most is missing"}},
	{"an adaptive run", `{"timeout":"adaptive","spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"x"}}]}}`, []string{"line 1: timeout: "}},
	{"presets", dag(`{"name":"a","executor":{"type":"x"},"attempt_timeout":"preset llm_call"},{"name":"b","executor":{"type":"x"},"attempt_timeout":"preset lm_call"}`), []string{`line 1: spec.templates[0].dag.tasks[1].attempt_timeout: there is no preset "lm_call": did you mean llm_call?`}},
	{"more tokens than a list has", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"c","action_id":"x"}],"actions":[{"id":"x","kind":"work"}],"transitions":[{"id":"t","from":"a","to":"b","fan_out":{"items":[1,2]}},{"from":"b","to":"c","synchronization":{"strategy":{"m_of_n":3},"sibling_group":"t"}}]}`,
		[]string{"line 1: transitions[1].synchronization.strategy: 3 of 2 tokens can never complete"}},
	{"the outer tokens meet first", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"c","action_id":"x"},{"id":"d","action_id":"x"},{"id":"e","action_id":"x"}],"actions":[{"id":"x","kind":"work"}],"transitions":[
		{"id":"o","from":"a","to":"b","fan_out":{"spawn_count":2}},{"id":"i","from":"b","to":"c","fan_out":{"spawn_count":2}},
		{"from":"c","to":"d","synchronization":{"strategy":"all","sibling_group":"o"}},{"from":"d","to":"e","synchronization":{"strategy":"all","sibling_group":"i"}}]}`,
		[]string{"line 3: transitions[3].synchronization.sibling_group: no token of i comes here"}},
	{"a version that nothing has", dag(`{"name":"a","executor":{"type":"workflow_call","workflow":"f","version":"a b/c"}}`), []string{`line 1: spec.templates[0].dag.tasks[0].executor.version: "a b/c" must be 1 to 64`}},
	{"a merge of what is no result", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"}],"actions":[{"id":"x","kind":"work"}],"transitions":[{"id":"t","from":"a","to":"b","fan_out":{"spawn_count":3}},{"from":"b","to":"a","synchronization":{"strategy":"all","sibling_group":"t","merge":{"source":"_branch.item"}}}],"initial":"a"}`,
		[]string{"line 1: transitions[1].synchronization.merge.source: must begin with _branch.output"}},
	{"an adaptive time without bounds, and a pause of null", dag(`{"name":"a","executor":{"type":"x"},"timeout":"adaptive","adaptive":{"least":null,"most":null},"retry":{"limit":1,"backoff":{"delay":null}}}`),
		[]string{"line 1: spec.templates[0].dag.tasks[0].adaptive.least: must be a time such as 30s, and is null", "line 1: spec.templates[0].dag.tasks[0].adaptive.most: must be a time", "line 1: spec.templates[0].dag.tasks[0].retry.backoff.delay: must be a time"}},
	{"names", dag(`{"name":"s-a","executor":{"type":"x"}},{"name":"a__2","executor":{"type":"x"}}`), []string{"line 1: spec.templates[0].dag.tasks[0].name: s-a begins with s-", "line 1: spec.templates[0].dag.tasks[1].name: a__2 has __"}},
	{"an expression and on_timeout", dag(`{"name":"a","executor":{"type":"x"},"on_timeout":"fail","retry":{"limit":1,"expression":"tasks.a.code == 1"}}`), []string{"line 1: spec.templates[0].dag.tasks[0].on_timeout: cannot be beside a retry with an expression"}},
	{"numbers of YAML", "id: f\nspec:\n  entrypoint: main\n  templates: [{name: main, loop: {until: 'true', limit: 010, task: {executor: {type: echo}}}}]\n", []string{"line 4: the definition: 010 is not a number as JSON writes it"}},
	{"versions", `{"version":"a b","spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"x"}}]}}`, []string{`line 1: version: "a b" must be`}},
	{"what nobody runs", dag(`{"name":"a","executor":{"type":"wait"},"retry":{"limit":3},"queue_timeout":"1s","on_timeout":"fail"}`),
		[]string{"line 1: spec.templates[0].dag.tasks[0].retry: does not belong to wait", "line 1: spec.templates[0].dag.tasks[0].queue_timeout: does not", "line 1: spec.templates[0].dag.tasks[0].on_timeout: does not"}},
	{"an input without a value, and defaults", `{"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"a","value":"{{ inputs.parameters.b }}"},{"name":"b","value":1}]},"dag":{"tasks":[{"name":"n","executor":{"type":"x"},"inputs":{"parameters":[{"name":"b"}]}}]}}]}}`,
		[]string{"line 1: spec.templates[0]: the default of the input a reads b, which has a default", "line 1: spec.templates[0].dag.tasks[0].inputs.parameters[0]: value is missing"}},
	{"the state of a graph", `{"nodes":[{"id":"a","action_id":"x"},{"id":"lost","action_id":"x"}],"initial":"a","actions":[{"id":"x","kind":"update_context","implementation":{"values":{"state.a":1,"state.a.b":2,"total":3}}}]}`,
		[]string{"line 1: nodes[1]: no way leads to the node from a", "line 1: actions[0].implementation.values.state.a.b: is within state.a", "line 1: actions[0].implementation.values.total: update_context writes the state"}},
	{"meetings", `{"nodes":[{"id":"a","action_id":"x"},{"id":"b","action_id":"x"},{"id":"c","action_id":"x"},{"id":"d","action_id":"x"}],"actions":[{"id":"x","kind":"x"}],"transitions":[{"id":"f","from":"a","to":"b","fan_out":{"spawn_count":2}},
		{"from":"b","to":"c","synchronization":{"strategy":"all","sibling_group":"f"}},{"id":"g","from":"b","to":"d","fan_out":{"spawn_count":2},"synchronization":{"strategy":"all","sibling_group":"f"}}]}`,
		[]string{"line 2: transitions[2]: has fan_out and synchronization", "line 2: transitions[2].synchronization.sibling_group: the tokens of f meet at another transition"}},
	{"a name with a minus", dag(`{"name":"my-node","executor":{"type":"x"}},{"name":"b","executor":{"type":"x"},"dependencies":["my-node"],"inputs":{"parameters":[{"name":"p","value":"{{ tasks.my-node.phase }}"}]}}`),
		[]string{`line 1: spec.templates[0].dag.tasks[1].inputs.parameters[0].value: at character 10: there is no "node" here: use inputs, tasks; a name with a minus is written tasks["a-b"]`}},
	{"a field of the other spelling", `{"nodes":[{"id":"a","action_id":"x"}],"actions":[{"id":"x","kind":"workflow_call","implementation":{"workflow":"w","version":"1"}}]}`,
		[]string{"line 1: actions[0].implementation: workflow_def_id is missing", "line 1: actions[0].implementation.workflow: is not a field here", "line 1: actions[0].implementation.version: is not a field here"}},
	{"lines of YAML", "spec:\n  entrypoint: main\n  templates:\n  - name: main\n    executor:\n      type: sleep\n", []string{"line 6: spec.templates[0].executor: duration is missing, which sleep needs"}},
	{"a number for a text", "id: f\nversion: 1.0\nspec:\n  entrypoint: main\n  templates: [{name: main, executor: {type: echo}}]\n", []string{"line 2: version: must be a text, and is a number: put it in quotes"}},
	{"an alias", "a: &x 1\nb: *x\n", []string{"line 1: the definition: anchors and aliases are not allowed"}},
}

// Each of these definitions has exactly these faults.
func TestFaultsHaveTheirPaths(t *testing.T) {
	for _, test := range faultyDefinitions {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read([]byte(test.text))
			var got []string
			if err != nil {
				if !errors.Is(err, refusal.ErrInvalid) {
					t.Errorf("%v is not ErrInvalid", err)
				}
				got = strings.Split(err.Error(), "\n")
			}
			if !slices.EqualFunc(got, test.faults, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.faults, "\n"))
			}
		})
	}
}

// nested returns a definition with so many templates, each of which calls the next one, and a leaf in the last one.
func nested(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `{"name":"t%d","dag":{"tasks":[{"name":"n","template":"t%d"}]}},`, i, i+1)
	}
	return fmt.Sprintf(`{"spec":{"entrypoint":"t0","templates":[%s{"name":"t%d","executor":{"type":"x"}}]}}`, all.String(), n)
}

// dag returns a definition whose only template is a DAG.
func dag(tasks string) string {
	return `{"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[` + tasks + `]}}]}}`
}

// The two spellings of one flow make the same limits.
func TestLimitsOfBothSpellings(t *testing.T) {
	d, err := Read([]byte(`{"timeout_ms":null,"nodes":[
		{"id":"a","action_id":"act"},
		{"id":"b","action_id":"act","timeout_ms":null},
		{"id":"c","action_id":"act","timeout_ms":5000,"on_timeout":"retry","retry":{"limit":3}},
		{"id":"child","action_id":"research","timeout_ms":1800000}],
		"initial":"a","transitions":[{"from":"a","to":"b"},{"from":"b","to":"c"},{"from":"c","to":"child"}],
		"actions":[{"id":"act","kind":"llm_call","execution":{"timeout_ms":120000}},
			{"id":"research","kind":"workflow_call","implementation":{"workflow_def_id":"research-workflow"},"execution":{"timeout_ms":600000}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if d.Timeout != (Span{Set: true, Time: 0}) {
		t.Errorf("the run has the limit %v, want none", d.Timeout)
	}
	two, five := Span{Set: true, Time: 2 * time.Minute}, Span{Set: true, Time: 5 * time.Second}
	none := Span{Set: true, Time: 0}
	for i, want := range []Times{
		{Attempt: two, Line: two, Said: true},
		{Attempt: none, Line: none, Said: true},
		{Attempt: five, Line: five, Said: true, Retries: true},
		{Attempt: Span{Set: true, Time: 30 * time.Minute}, Line: Span{Set: true, Time: 30 * time.Minute}, Said: true},
	} {
		if got := d.Templates[d.Entry].Graph.Nodes[i].Times; got != want {
			t.Errorf("node %d has %+v, want %+v", i, got, want)
		}
	}
	d, err = Read([]byte(dag(`{"name":"a","executor":{"type":"x"},"timeout":"10s","attempt_timeout":"3s","retry":{"limit":3}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if d.Timeout != (Span{Set: true, Time: time.Hour}) {
		t.Errorf("a run that says nothing has %v", d.Timeout)
	}
	want := Times{Total: Span{Set: true, Time: 10 * time.Second}, Attempt: Span{Set: true, Time: 3 * time.Second}}
	if got := d.Templates["main"].DAG.Nodes[0].Times; got != want {
		t.Errorf("the node has %+v, want %+v", got, want)
	}
}

// No text makes the reader panic, and a text that is refused says why in lines that are not empty.
func FuzzRead(f *testing.F) {
	f.Add([]byte(dag(`{"name":"a","executor":{"type":"echo"},"inputs":{"parameters":[{"name":"suspend","value":true}]}}`)))
	f.Add([]byte("nodes: [{id: a, action_id: x}]\nactions: [{id: x, kind: set, implementation: {values: {state.x: '{{ inputs.parameters.n + 1 }}'}}}]\n"))
	f.Add([]byte(`{"spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"until":"last.phase == 'Succeeded'","limit":3,"task":{"executor":{"type":"http_request","url":"http://x"}}}}]}}`))
	f.Add([]byte("nodes: [{0\r\r\r0}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Read(text)
		if (d == nil) != (err != nil) {
			t.Fatalf("%v, %v", d, err)
		}
		if err != nil && slices.Contains(strings.Split(err.Error(), "\n"), "") {
			t.Errorf("the error has an empty line: %q", err)
		}
	})
}

// A definition of less than a megabyte can have so many expressions that it takes many seconds to compile them.
func TestADefinitionHasFewExpressions(t *testing.T) {
	for n, want := range map[int]string{maxExpressions: "", maxExpressions + 1: "beyond the 5000 expressions"} {
		text := fmt.Sprintf(`{"id":"many","spec":{"entrypoint":"m","templates":[{"name":"m","dag":{"tasks":[{"name":"a","executor":{"type":"set","values":{"v":[%s"x"]}}},{"name":"b","dependencies":["a"],"executor":{"type":"set","values":{}}}]}}]}}`,
			strings.Repeat(`"{{1}}",`, n))
		_, err := ReadNew([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d expressions: %.300v, want %q", n, err, want)
		}
	}
}
