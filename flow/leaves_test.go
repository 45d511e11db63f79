package flow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// dag returns a definition with an id whose entry is a DAG of nodes.
func dag(id string, nodes ...string) string {
	return fmt.Sprintf(`{"id":%q,"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[%s]}},
		{"name":"again","task":{"template":"inner"}},{"name":"inner","dag":{"tasks":[{"name":"b","executor":{"type":"x"}}]}},{"name":"leaf","executor":{"type":"x"}},{"name":"wrapped","task":{"template":"leaf"}}]}}`, id, strings.Join(nodes, ","))
}

// A retry's expression reads the node, whatever the kind of its task, and each attempt has the same inputs.
func TestALeafIsRetriedAsItsExpressionSays(t *testing.T) {
	s := newStage(t)
	ran := map[string]int{}
	worker.Handle(s.w, "pkg/run-it", func(ctx context.Context, in struct{ Fail string }) (any, error) {
		name := worker.Info(ctx).ID
		ran[name[strings.LastIndexByte(name, '.')+1:]+in.Fail]++
		if in.Fail == "fail" {
			return map[string]any{"why": "bad"}, worker.Discard(worker.Fail(7, errors.New("no")))
		}
		return nil, errors.New("broken")
	})
	node := func(name, fail, retry string) string {
		return fmt.Sprintf(`{"name":%q,"executor":{"type":"pkg/run-it"},"inputs":{"parameters":[{"name":"fail","value":%q}]},"continueOn":{"failed":true,"error":true},"retry":%s}`, name, fail, retry)
	}
	s.put(dag("r", node("always", "fail", `{"limit":2,"expression":"tasks.always.phase != 'Succeeded'"}`), node("code", "fail", `{"limit":3,"expression":"tasks.code.code == 7 && tasks.code.outputs.parameters.why == 'bad' && tasks.code.msg == 'no'"}`),
		node("never", "error", `{"limit":3,"expression":"tasks.never.phase == 'Timeout'"}`), node("usual", "fail", `{"limit":3}`), node("errors", "error", `{"limit":1}`), node("off", "error", `{"limit":0}`)))
	id := s.enqueue("flow.r", "")
	s.drain()
	want := map[string]int{"alwaysfail": 3, "codefail": 4, "nevererror": 1, "usualfail": 1, "errorserror": 2, "offerror": 1}
	if fmt.Sprint(ran) != fmt.Sprint(want) {
		t.Errorf("attempts: %v, want %v", ran, want)
	}
	if r := s.get(id); r.Status != queue.Completed {
		t.Errorf("the run is %s: %s", r.Status, r.Error)
	}
}

// A sub-tree that is wrapped is run again with new tasks.
func TestAWrapperRunsItsSubTreeAgain(t *testing.T) {
	s := newStage(t)
	ran := 0
	worker.Handle(s.w, "x", func(context.Context, any) (any, error) {
		if ran++; ran < 3 {
			return nil, errors.New("broken")
		}
		return map[string]int{"n": ran}, nil
	})
	s.put(dag("w", `{"name":"a","template":"again","retry":{"limit":2}}`))
	id := s.enqueue("flow.w", "")
	s.drain()
	if r := s.get(id); ran != 3 || string(r.Result) != `{"outputs":{"parameters":{"n":3}}}` {
		t.Errorf("after %d executions the run has %s%s", ran, r.Result, r.Error)
	}
}

// A signal resumes the wait for it, whether it is sent before the run begins, before the wait, or while it waits.
func TestAWaitTakesSignals(t *testing.T) {
	for _, when := range []string{"before the run", "before the wait", "while it waits"} {
		t.Run(when, func(t *testing.T) {
			s := newStage(t)
			worker.Handle(s.w, "x", func(context.Context, any) (any, error) { return nil, nil })
			s.put(dag("s", `{"name":"first","executor":{"type":"wait"}}`, `{"name":"a","dependencies":["first"],"executor":{"type":"wait","signal":"go"}}`,
				`{"name":"b","dependencies":["a"],"executor":{"type":"wait","signal":"go"}}`,
				`{"name":"out","executor":{"type":"set","values":{"a":"{{ tasks.a.outputs.parameters.by }}","b":"{{ tasks.b.outputs.parameters.by }}"}},"dependencies":["b"]}`))
			id := s.enqueue("flow.s", "")
			send := func(by string) {
				t.Helper()
				if _, err := agentwait.SendSignal(t.Context(), s.q, id, "go", map[string]string{"by": by}); err != nil {
					t.Fatal(err)
				}
			}
			settle := func() {
				t.Helper()
				s.drain()
				if _, err := s.q.Resolve(t.Context(), id+".first", nil); err != nil {
					t.Fatal(err)
				}
				s.drain()
			}
			switch when {
			case "before the run":
				send("ann")
				settle()
			case "before the wait":
				s.drain()
				send("ann")
				settle()
			default:
				settle()
				send("ann")
			}
			s.drain()
			send("bob")
			s.drain()
			if r := s.get(id); string(r.Result) != `{"outputs":{"parameters":{"a":"ann","b":"bob"}}}` {
				t.Errorf("the run is %s with %s%s", r.Status, r.Result, r.Error)
			}
		})
	}
}

// A request is a task that workers of flows run themselves.
func TestANodeMakesARequest(t *testing.T) {
	s := newStage(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	s.put(dag("h", fmt.Sprintf(`{"name":"a","executor":{"type":"http_request","url":"%s/{{ 1 + 1 }}"}}`, server.URL),
		`{"name":"out","executor":{"type":"set","values":{"got":"{{ tasks.a.outputs.parameters.body.path }}","status":"{{ tasks.a.outputs.parameters.status }}"}},"dependencies":["a"]}`))
	id := s.enqueue("flow.h", "")
	s.drain()
	if r := s.get(id); string(r.Result) != `{"outputs":{"parameters":{"got":"/2","status":200}}}` {
		t.Errorf("the run is %s with %s%s", r.Status, r.Result, r.Error)
	}
}

// A payload that is no input of the flow ends the run at once, with a sentence.
func TestBadPayloadsAreRefused(t *testing.T) {
	s := newStage(t)
	s.put(`{"id":"p","spec":{"entrypoint":"main","inputs":{"parameters":[{"name":"number"},{"name":"more","value":5}]},"templates":[{"name":"main","dag":{"tasks":[
		{"name":"out","executor":{"type":"set","values":{"n":"{{ inputs.parameters.number }}","m":"{{ inputs.parameters.more }}"}}}]}}]}}`)
	for payload, want := range map[string]string{
		``: "are without number", `{}`: "are without number", `{"number":3}`: `"number"`, `{"parameters":{"numbre":3,"number":3}}`: "did you mean number?", `[]`: "must be {", `{`: "must be {",
		`{"parameters":{"number":1},"version":"9"}`: `no version 9 of the flow p`, `{"parameters":{"number":1}}{}`: "more behind",
	} {
		id := s.enqueue("flow.p", payload)
		s.drain()
		if r := s.get(id); r.Phase() != "Failed" || !strings.Contains(r.Error, want) {
			t.Errorf("%s: the run is %s with %q, want %q", payload, r.Phase(), r.Error, want)
		}
	}
	for id, want := range map[string]string{s.enqueue("flow.p", `{"parameters":{"number":1},"version":"1"}`): `{"outputs":{"parameters":{"m":5,"n":1}}}`} {
		s.drain()
		if r := s.get(id); string(r.Result) != want {
			t.Errorf("the run is %s with %s%s", r.Status, r.Result, r.Error)
		}
	}
	id := s.enqueue("flow.nowhere", "")
	s.drain()
	if r := s.get(id); r.Phase() != "Failed" || !strings.Contains(r.Error, "no flow nowhere") {
		t.Errorf("a run of no definition is %s with %q", r.Phase(), r.Error)
	}
	if _, err := flow.Put(t.Context(), s.q, []byte(`{`)); err == nil {
		t.Error("Put takes a definition that is broken off")
	}
}
