package requirements

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The runs of the document, written as its definitions.

func define(t *testing.T, q *queue.Queue, text string) {
	t.Helper()
	if _, err := flow.Put(t.Context(), q, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// A run has the timeout_ms of its definition from its creation, none for null, and an hour if the definition says nothing.
func timesOfDefinitions(t *testing.T) {
	s := frozen(t)
	for said, want := range map[string]time.Duration{`"timeout_ms":600000,`: 10 * time.Minute, `"timeout_ms":null,`: 0, "": time.Hour} {
		define(t, s.q, `{"id":"d",`+said+`"nodes":[{"id":"A","action_id":"a"}],"actions":[{"id":"a","kind":"llm_call"}],"initial":"A"}`)
		r, has := s.record(s.enqueue(queue.Task{Kind: "flow.d"})), time.Duration(0)
		if !r.Deadline.IsZero() {
			has = r.Deadline.Sub(r.CreatedAt)
		}
		if has != want {
			t.Errorf("a run of a definition with %s has %v, want %v", said, has, want)
		}
	}
}

// A→B→C→A: each node completes, and the run ends at its hour. All events say which layer and which node it was.
func circleOfADefinition(t *testing.T) {
	p := newPlay(t)
	flow.Register(p.w)
	worker.Handle(p.w, "seven", func(ctx context.Context, _ any) (string, error) { return "", p.sleep(ctx, 7*time.Minute) })
	define(t, p.q, `{"id":"circle","timeout_ms":3600000,"actions":[{"id":"a","kind":"seven"}],"initial":"A",
		"nodes":[{"id":"A","action_id":"a"},{"id":"B","action_id":"a"},{"id":"C","action_id":"a"}],
		"transitions":[{"from":"A","to":"B"},{"from":"B","to":"C"},{"from":"C","to":"A"}]}`)
	p.start()
	id := p.task(queue.Task{Kind: "flow.circle"}, nil)
	r := p.end(id)
	if r.Error != fixedError || r.TimeoutType != queue.TimeoutWorkflow || at(r.CreatedAt, r.CompletedAt) != "1h0m0s" || r.Fields["children"] != "9" {
		t.Errorf("the run ended by %s (%s) at %s with %s nodes, want workflow at 1h with 9", r.TimeoutType, r.Error, at(r.CreatedAt, r.CompletedAt), r.Fields["children"])
	}
	ends := p.timeouts()
	if len(ends) != 2 {
		t.Fatalf("%d timeouts, want those of the run and of its last node: %v", len(ends), ends)
	}
	for task, e := range ends {
		policy, node := "fail", any("C")
		if task == id {
			policy, node = "cancel_all", nil
		}
		if e["timeout_type"] != "workflow" || e["reason"] != "workflow_timeout" || e["policy_applied"] != policy || e["node"] != node {
			t.Errorf("the event of %s says %v, want %s of node %v", task, e, policy, node)
		}
		if task != id && (e["definition"] != "circle" || e["version"] != "1" || e["workflow_run_id"] != id) {
			t.Errorf("the event of the node says %v", e)
		}
	}
}

// research-workflow has 600000 ms. The node that calls it says 1800000, and that is its time.
func nodeOverChildDefinition(t *testing.T) {
	p := newPlay(t)
	flow.Register(p.w)
	worker.Handle(p.w, "long", func(ctx context.Context, _ any) (string, error) { return "", p.sleep(ctx, 24*time.Hour) })
	define(t, p.q, `{"id":"research-workflow","timeout_ms":600000,"nodes":[{"id":"A","action_id":"a"}],"actions":[{"id":"a","kind":"long"}],"initial":"A"}`)
	call := func(said string) string {
		return `{"id":"parent","nodes":[{"id":"call","action_id":"research_action"` + said + `}],"initial":"call",
			"actions":[{"id":"research_action","kind":"workflow_call","implementation":{"workflow_def_id":"research-workflow"}}]}`
	}
	define(t, p.q, call(`,"timeout_ms":1800000`))
	p.start()
	longer := p.end(p.task(queue.Task{Kind: "flow.parent"}, nil))
	define(t, p.q, call(""))
	shorter := p.end(p.task(queue.Task{Kind: "flow.parent"}, nil))
	for want, parent := range map[string]*queue.Record{"30m0s": longer, "10m0s": shorter} {
		child := p.record(parent.ID + ".call")
		if at(child.CreatedAt, child.CompletedAt) != want || child.TimeoutType != queue.TimeoutWorkflow || child.Node.Name != "call" {
			t.Errorf("the child run %v ended by %s at %s, want workflow at %s", child.Node, child.TimeoutType, at(child.CreatedAt, child.CompletedAt), want)
		}
	}
}
