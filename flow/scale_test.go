package flow_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// work runs a worker that follows flows, and whose handler of the kind x returns its input. ran counts the calls of the handler.
func work(t *testing.T, q *queue.Queue) (ran *atomic.Int64, stop func()) {
	t.Helper()
	w := worker.New(q, worker.Config{Concurrency: 10})
	flow.Register(w)
	ran = &atomic.Int64{}
	worker.Handle(w, "x", func(_ context.Context, in map[string]any) (map[string]any, error) { ran.Add(1); return in, nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return ran, func() { cancel(); <-done }
}

// runWith runs a definition with a real worker, and returns its record.
func runWith(t *testing.T, text, payload string) *queue.Record {
	t.Helper()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	stored, err := flow.Put(t.Context(), q, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "flow." + stored.ID, Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	_, stop := work(t, q)
	defer stop()
	if _, err := q.Result(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	t.Logf("%v", time.Since(begun))
	record, err := q.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// chain returns a definition of n nodes, one after the other, each of which adds 1 to what the one before has.
func chain(n int) string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`{"name":"n%d","executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":%d}]}}`, i, i)
		if i > 0 {
			nodes[i] = fmt.Sprintf(`{"name":"n%d","dependencies":["n%d"],"executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":"{{ tasks.n%d.outputs.parameters.i + 1 }}"}]}}`, i, i-1, i-1)
		}
	}
	return dag("chain", nodes...)
}

func TestALongChain(t *testing.T) {
	nodes := harness.Times(100, 300, 1000)
	r := runWith(t, chain(nodes), "")
	if string(r.Result) != fmt.Sprintf(`{"outputs":{"parameters":{"i":%d}}}`, nodes-1) {
		t.Errorf("%s%s", r.Result, r.Error)
	}
}

// Many runs of 20 nodes each, at once.
func TestManyRunsOfTwentyNodes(t *testing.T) {
	runs := harness.Times(20, 50, 200)
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	if _, err := flow.Put(t.Context(), q, []byte(chain(20))); err != nil {
		t.Fatal(err)
	}
	tasks := make([]queue.Task, runs)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "flow.chain"}
	}
	receipts, err := q.EnqueueAll(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	ran, stop := work(t, q)
	for _, r := range receipts {
		result, err := q.Result(t.Context(), r.ID)
		if err != nil || string(result) != `{"outputs":{"parameters":{"i":19}}}` {
			t.Fatalf("%s: %s %v", r.ID, result, err)
		}
	}
	stop()
	if ran.Load() != int64(runs*20) {
		t.Errorf("%d handlers ran, want %d", ran.Load(), runs*20)
	}
}

func TestAFanOutOfAThousand(t *testing.T) {
	nodes := make([]string, 1000)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`{"name":"n%d","executor":{"type":"x"}}`, i)
	}
	r := runWith(t, dag("wide", append(nodes, `{"name":"last","executor":{"type":"x"},"dependencies":["n1","n999"]}`)...), "")
	if r.Status != queue.Completed {
		t.Errorf("%s", r.Error)
	}
}

func TestALoopOfManyRounds(t *testing.T) {
	last := harness.Times(100, 400, 10_000) - 1
	r := runWith(t, fmt.Sprintf(`{"id":"loop","spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"until":"last.outputs.parameters.i == %d","limit":10000,
		"task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":"{{ index }}"}]}}}}]}}`, last), "")
	if !strings.Contains(string(r.Result), fmt.Sprint(last)) {
		t.Errorf("%s%s", r.Result, r.Error)
	}
}

func TestALoopOverManyItems(t *testing.T) {
	r := runWith(t, `{"id":"items","inputs":{"parameters":[{"name":"n"}]},"spec":{"entrypoint":"main","templates":[{"name":"main","loop":{"items":"{{ inputs.parameters.n }}","parallel":10,
		"task":{"executor":{"type":"x"},"inputs":{"parameters":[{"name":"i","value":"{{ item }}"}]}}}}]}}`, `{"parameters":{"n":[`+strings.Repeat("1,", harness.Times(100, 400, 10_000)-1)+`1]}}`)
	if r.Status != queue.Completed {
		t.Errorf("%s", r.Error)
	}
}
