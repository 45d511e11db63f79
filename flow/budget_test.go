package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// What one Read does is bounded in sum: the nodes of a run and of all its parts, and the time in which it computes.
func TestReadHasABudget(t *testing.T) {
	t.Parallel()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	w := worker.New(q, worker.Config{})
	Register(w)
	_, err := Put(t.Context(), q, []byte(`{"id":"parts","spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"items":[1,2,3],"task":{"template":"part"}}},
		{"name":"part","dag":{"tasks":[{"name":"a","executor":{"type":"echo"}},{"name":"b","executor":{"type":"echo"}}]}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := q.Enqueue(t.Context(), queue.Task{Kind: "flow.parts"})
	if err != nil {
		t.Fatal(err)
	}
	for ran := true; ran; {
		job, err := w.RunOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ran = job != nil
	}
	for _, test := range []struct {
		deep    bool
		nodes   int
		longest time.Duration
		want    string
	}{
		{true, 9, time.Hour, ""}, // 3 rounds with 2 nodes each
		{true, 8, time.Hour, "more than 8 nodes with those of its parts"},
		{false, 3, time.Hour, ""},
		{false, 2, time.Hour, "more than 2 nodes"},
		{false, 9, 0, "takes more than 0s"},
	} {
		v := &viewer{q, newDefinitions(q), test.deep, newBudget()}
		v.budget.maxNodes, v.budget.longest = test.nodes, test.longest
		_, err := v.readRun(t.Context(), run.ID)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// A worker keeps the definitions that it uses, and their size is bounded.
func TestDefinitionsInMemoryAreBounded(t *testing.T) {
	d := newDefinitions(nil)
	text := []byte(`{"id":"d",` + strings.Repeat(" ", 1<<20-200) + `"spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"echo"}}]}}`)
	for i := range 40 {
		if _, err := d.keep("d", fmt.Sprint(i), text); err != nil {
			t.Fatal(err)
		}
		if d.use("d", "0") == nil {
			t.Fatalf("after %d others, one that is used is not in memory", i)
		}
	}
	if n := len(d.cache); n != maxCachedBytes/len(text) || d.bytes != n*len(text) || d.use("d", "39") == nil || d.use("d", "1") != nil {
		t.Errorf("%d definitions with %d bytes are in memory", n, d.bytes)
	}
}
