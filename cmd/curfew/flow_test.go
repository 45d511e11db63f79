package main

import (
	"os"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// definitionFile has a definition: a page is rendered, reviewed and published.
const definitionFile = "testdata/publish.yaml"

// oneDefinition returns the definition of the file with another kind of leaf.
func oneDefinition(kind string) string {
	return "id: publish\nversion: \"1\"\nspec:\n  entrypoint: main\n  templates:\n  - {name: main, executor: {type: " + kind + "}}\n"
}

// startRun stores the definition of the file, and starts a run 0-RUN that waits for its first leaf.
func startRun(t *testing.T, q *queue.Queue) (id string) {
	t.Helper()
	text, err := os.ReadFile(definitionFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Put(t.Context(), q, text); err != nil {
		t.Fatal(err)
	}
	id = queuetest.Enqueue(t, q, queue.Task{ID: "0-RUN", Kind: "flow.publish", Queue: "flows", Payload: []byte(`{"parameters":{"page":1}}`)}).ID
	runFlows(t, q)
	return id
}

// runFlows runs what can run of flows.
func runFlows(t *testing.T, q *queue.Queue) {
	t.Helper()
	w := worker.New(q, worker.Config{Queues: map[string]int{"flows": 1}})
	flow.Register(w)
	for {
		ran, err := w.RunOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ran == nil {
			return
		}
	}
}
