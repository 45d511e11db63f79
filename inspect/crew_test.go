package inspect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestCrew(t *testing.T) {
	mail := inspect.Worker{Queues: map[string]int{"email": 1}, Kinds: []string{"letter"}}
	strict := inspect.Worker{Strict: []string{"first", "second"}}
	silent := inspect.Worker{}
	leaving := inspect.Worker{State: queue.WorkerDraining, Queues: map[string]int{"old": 1}}
	for _, row := range []struct {
		claim       string
		workers     []inspect.Worker
		queue, kind string
		want        string
	}{
		{"nobody lives", nil, "email", "letter", "true  false true "},
		{"it is served", []inspect.Worker{mail}, "email", "letter", "false  false false "},
		{"a typing error", []inspect.Worker{mail}, "emial", "letter", "true email false true "},
		{"another queue", []inspect.Worker{mail}, "images", "letter", "true  false true "},
		{"another kind", []inspect.Worker{mail}, "email", "lettr", "false  false true letter"},
		{"in strict order", []inspect.Worker{mail, strict}, "second", "any", "false  false false "},
		{"a kind of another queue's worker", []inspect.Worker{mail, {Queues: map[string]int{"x": 1}, Kinds: []string{"k"}}}, "x", "letter", "false  false true "},
		{"a worker that tells nothing", []inspect.Worker{mail, silent}, "emial", "lettr", "false  false false "},
		{"a worker that tells no kinds", []inspect.Worker{mail, {Queues: map[string]int{"email": 1}}}, "email", "lettr", "false  false false "},
		{"a worker that drains", []inspect.Worker{mail, leaving}, "old", "letter", "true  true true "},
	} {
		c := inspect.CrewOf(row.workers)
		unserved, near, drains := c.Unserved(row.queue)
		unhandled, nearKind := c.Unhandled(row.queue, row.kind)
		if got := fmt.Sprint(unserved, " ", near, " ", drains, " ", unhandled, " ", nearKind); got != row.want {
			t.Errorf("%s: %q, want %q", row.claim, got, row.want)
		}
	}
}

// Explain reads the workers with one call, whatever their number, and does not need them for a task that runs.
func TestExplainReadsWorkersInOneCall(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	id := queuetest.Enqueue(t, q, queue.Task{Kind: "k", Queue: "emial"})
	for i := range 300 {
		worker := fmt.Sprint("w", i)
		if _, err := claim.Of(q).Heartbeat(t.Context(), 0, worker, time.Hour, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := claim.Of(q).Describe(t.Context(), 0, worker, queue.WorkerRunning, `{"queues":{"email":1},"kinds":["k"]}`); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	rdb.AddHook(queuetest.Around{Before: func() { calls++ }})
	e, err := inspect.Explain(t.Context(), q, id.ID)
	if err != nil || calls > 2 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	if !slices.ContainsFunc(e.Warnings, func(w inspect.Warning) bool {
		return w.Word == inspect.WarnUnserved && w.Text == "no live worker serves queue emial (nearest: email)"
	}) {
		t.Errorf("warnings %+v", e.Warnings)
	}
}
