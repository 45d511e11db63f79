package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const reviewed = `id: reviewed
timeout: 30m
spec:
  entrypoint: main
  inputs: {parameters: [{name: page}]}
  templates:
  - name: main
    dag:
      tasks:
      - {name: review, executor: {type: wait}}
      - name: out
        executor: {type: set, values: {page: "{{ inputs.parameters.page }}", by: "{{ tasks.review.outputs.parameters.by }}"}}
        dependencies: [review]
`

func yaml(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }

// runFlows runs what can run of flows.
func (s *stage) runFlows() {
	s.t.Helper()
	w := worker.New(s.q, worker.Config{})
	flow.Register(w)
	for {
		ran, err := w.RunOne(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if ran == nil {
			return
		}
	}
}

// A definition is stored, a run of it is started, read, resumed and ends, over HTTP.
func TestARunOfAFlowOverHTTP(t *testing.T) {
	s := newStage(t, Config{})
	if a := s.want(200, "POST", "flow-check?explain=true", reviewed, yaml); a.json["good"] != true || a.json["plan"] == nil {
		t.Errorf("the check says %s", a.body)
	}
	if a := s.want(200, "GET", "flows", ""); a.body != `{"definitions":[]}`+"\n" {
		t.Errorf("a check has stored something: %s", a.body)
	}
	if a := s.want(201, "PUT", "flows", reviewed, yaml); a.text("definition") != "reviewed" || a.text("version") != "1" {
		t.Errorf("stored as %s", a.body)
	}
	if a := s.want(200, "PUT", "flows", reviewed, yaml); a.json["new"] != false {
		t.Errorf("the same again: %s", a.body)
	}
	if a := s.want(200, "GET", "flows/reviewed?version=1", ""); a.text("text") != reviewed {
		t.Errorf("the definition is %s", a.body)
	}
	started := s.want(201, "POST", "flows/reviewed/runs", `{"parameters":{"page":9007199254740991},"idempotency_key":"a"}`)
	id := started.text("id")
	if again := s.want(200, "POST", "flows/reviewed/runs", `{"parameters":{"page":9007199254740991},"idempotency_key":"a"}`); again.text("id") != id {
		t.Errorf("the same key starts %s, want %s", again.body, id)
	}
	s.runFlows()
	run := s.want(200, "GET", "runs/"+id, "")
	if nodes, _ := run.json["nodes"].([]any); len(nodes) != 2 || nodes[0].(map[string]any)["key"] != "review" || run.text("version") != "1" {
		t.Errorf("the run is %s", run.body)
	}
	if a := s.want(200, "GET", "runs/"+id+"/graph", ""); !strings.Contains(a.text("graph"), "flowchart") || !strings.Contains(a.text("graph"), "review") || !strings.Contains(a.text("graph"), " --> ") {
		t.Errorf("the graph is %s", a.body)
	}
	s.want(200, "POST", "runs/"+id+"/resume", `{"node":"review","payload":{"by":"ada"}}`)
	if a := s.want(409, "POST", "runs/"+id+"/resume", `{"node":"review","payload":{"by":"bob"}}`); a.word() != "conflict" {
		t.Errorf("a second value: %s", a.body)
	}
	s.runFlows()
	if a := s.want(200, "GET", "tasks/"+id+"/result", ""); !strings.Contains(a.body, `"result":{"outputs":{"parameters":{"by":"ada","page":9007199254740991}}}`) {
		t.Errorf("the run has ended with %s", a.body)
	}
	if a := s.want(200, "GET", "flows/reviewed/runs?status=COMPLETED", ""); !strings.Contains(a.body, id) {
		t.Errorf("the runs are %s", a.body)
	}
	if a := s.want(200, "GET", "runs/"+id+"?hide_payloads=true", ""); strings.Contains(a.body, "ada") {
		t.Errorf("a hidden result is in %s", a.body)
	}
	for _, route := range []string{"flows ", "flows/{id}/runs ", "runs/{id}/resume "} {
		if !strings.Contains(s.log.String(), `msg="HTTP change" who=anybody`) || !strings.Contains(s.log.String(), "route="+route) {
			t.Errorf("the log has no change of %s: %s", route, s.log.String())
		}
	}
	if strings.Contains(s.log.String(), "route=flow-check") {
		t.Errorf("the log has a check: %s", s.log.String())
	}
}

// What is wrong is named, with the nearest name, and nothing is changed.
func TestBadRequestsAboutFlowsChangeNothing(t *testing.T) {
	s := newStage(t, Config{})
	s.want(201, "PUT", "flows", strings.Replace(reviewed, "id: reviewed", "id: reviewed\nversion: v1", 1), yaml)
	id := s.want(201, "POST", "flows/reviewed/runs", `{"parameters":{"page":1}}`).text("id")
	other := s.want(201, "POST", "tasks", `{"kind":"k","queue":"other"}`).text("id")
	w := worker.New(s.q, worker.Config{})
	flow.Register(w)
	if _, err := w.RunOne(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := redistest.Digest(t, s.q.Client(), s.q.Namespace()+":")
	for _, row := range []struct {
		method, path, body string
		status             int
		word, want         string
	}{
		{"PUT", "flows", "id: a\nspec: {entrypoint: b, templates: [{name: main, dag: {tasks: [{name: x, template: mian}]}}]}\n", 400, "invalid", "did you mean main?"},
		{"PUT", "flows", strings.Replace(reviewed, "id: reviewed", "id: reviewed\nversion: v1\ndescription: other", 1), 409, "conflict", "another version"},
		{"PUT", "flows", "spec: {entrypoint: main, templates: [{name: main, executor: {type: k}}]}\n", 400, "invalid", "id"},
		{"POST", "flow-check", "a: [", 400, "invalid", "line 1"},
		{"GET", "flows/reviewd", "", 404, "not_found", "did you mean reviewed?"},
		{"GET", "flows/reviewed?version=v2", "", 404, "not_found", "did you mean v1?"},
		{"GET", "flows/reviewd/runs", "", 404, "not_found", "did you mean reviewed?"},
		{"POST", "flows/reviewd/runs", "{}", 404, "not_found", "did you mean reviewed?"},
		{"POST", "flows/reviewed/runs", `{"parameters":{"page":1},"version":"v2"}`, 404, "not_found", "did you mean v1?"},
		{"POST", "flows/reviewed/runs", `{"parameters":{}}`, 400, "invalid", "page"},
		{"POST", "flows/reviewed/runs", `{"parameters":{"page":1,"pgae":2}}`, 400, "invalid", "pgae"},
		{"POST", "flows/reviewed/runs", `{"parameters":[1]}`, 400, "invalid", "must be an object"},
		{"POST", "flows/reviewed/runs", `{"parameters":{"page":1},"timeout_ms":0}`, 400, "invalid", "timeout_ms"},
		{"POST", "flows/reviewed/runs", `{"parameters":{"page":1},"queue":"two words"}`, 400, "invalid", "queue"},
		{"GET", "runs/" + other, "", 400, "invalid", "run"},
		{"GET", "runs/0-NOSUCH", "", 404, "not_found", ""},
		{"POST", "runs/" + id + "/resume", `{"node":"reveiw"}`, 404, "not_found", "did you mean review?"},
		{"POST", "runs/" + id + "/resume", `{"node":"out"}`, 400, "invalid", "out"},
		{"POST", "runs/" + id + "/resume", `{"node":""}`, 400, "invalid", "node"},
		{"POST", "runs/" + other + "/resume", `{"node":"review"}`, 400, "invalid", "run"},
	} {
		change := yaml
		if strings.HasPrefix(row.body, "{") || row.body == "" {
			change = func(*http.Request) {}
		}
		if a := s.do(row.method, row.path, row.body, change); a.status != row.status || a.word() != row.word || !strings.Contains(a.body, row.want) {
			t.Errorf("%s %s %s: %d %s, want %d %s with %q", row.method, row.path, row.body, a.status, a.body, row.status, row.word, row.want)
		}
	}
	if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()+":"); after != before {
		t.Error("a request that was refused has changed something")
	}
	if r, err := s.q.Get(t.Context(), id); err != nil || r.Status != queue.Waiting {
		t.Errorf("the run is %v, %v", r, err)
	}
}

// All faults of a definition are in the answer, with their paths and lines.
func TestTheAnswerHasAllFaults(t *testing.T) {
	s := newStage(t, Config{})
	a := s.want(400, "POST", "flow-check", "id: a\nspeck: {}\nspec:\n  entrypoint: b\n  templates:\n  - {name: main, executor: {type: k}, timeout: soon}\n", yaml)
	faults, _ := a.json["error"].(map[string]any)["faults"].([]any)
	if len(faults) != 3 || faults[0].(map[string]any)["path"] != "speck" || faults[0].(map[string]any)["line_number"] != 2.0 {
		t.Errorf("the answer is %s", a.body)
	}
	if a.field() != "speck" || !strings.Contains(a.sentence(), "2 more") {
		t.Errorf("the answer is %s", a.body)
	}
}
