package flow_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// stage is a namespace and a worker that runs one task at a time in the goroutine of the test.
type stage struct {
	t   *testing.T
	ctx context.Context
	q   *queue.Queue
	w   *worker.Worker

	hand queuetest.Taker // a worker for tasks of other queues
}

func newStage(t *testing.T) *stage {
	t.Parallel()
	return newStageOn(t, redistest.Shared(t).Client(t))
}

func newStageOn(t *testing.T, rdb redis.UniversalClient) *stage {
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	s := &stage{t: t, ctx: t.Context(), q: q, w: worker.New(q, worker.Config{})}
	flow.RegisterWith(s.w, flow.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return s
}

func (s *stage) put(text string) flow.Stored {
	s.t.Helper()
	stored, err := flow.Put(s.ctx, s.q, []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return stored
}

func (s *stage) drain() (n int) {
	s.t.Helper()
	for ; ; n++ {
		ran, err := s.w.RunOne(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if ran == nil {
			return n
		}
	}
}

func (s *stage) enqueue(kind, payload string) string {
	s.t.Helper()
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: kind, Payload: []byte(payload)})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

func (s *stage) get(id string) *queue.Record {
	s.t.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

const diamond = `
id: diamond
timeout: 30m
spec:
  entrypoint: main
  inputs: {parameters: [{name: n}]}
  templates:
  - name: main
    dag:
      tasks:
      - {name: first, executor: {type: double}, inputs: {parameters: [{name: n, value: "{{ inputs.parameters.n }}"}]}}
      - {name: left, template: twice, dependencies: [first], inputs: {parameters: [{name: n, value: "{{ tasks.first.outputs.parameters.n }}"}]}}
      - {name: right, executor: {type: double}, dependencies: [first], inputs: {parameters: [{name: n, value: 100}]}}
      - name: sum
        executor: {type: set, values: {sum: "{{ tasks.left.outputs.parameters.n + tasks.right.outputs.parameters.n }}"}}
        dependencies: [left, right]
  - name: twice
    inputs: {parameters: [{name: n}]}
    dag:
      tasks:
      - {name: a, executor: {type: double}, inputs: {parameters: [{name: n, value: "{{ inputs.parameters.n }}"}]}}
      - {name: b, executor: {type: double}, dependencies: [a], inputs: {parameters: [{name: n, value: "{{ tasks.a.outputs.parameters.n }}"}]}}
`

type number struct {
	N int `json:"n"`
}

// A run passes values from node to node, and a template within it is a run of its own.
func TestARunPassesValues(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "double", func(_ context.Context, in number) (number, error) { return number{2 * in.N}, nil })
	s.put(diamond)
	id := s.enqueue("flow.diamond", `{"parameters":{"n":3}}`)
	s.drain()
	r := s.get(id)
	if want := `{"outputs":{"parameters":{"sum":224}}}`; r.Status != queue.Completed || string(r.Result) != want {
		t.Errorf("the run is %s with %s%s, want %s", r.Status, r.Result, r.Error, want)
	}
	if d := r.Deadline.Sub(r.CreatedAt); d != 30*time.Minute {
		t.Errorf("the run has %v, want 30m", d)
	}
}

// A version that is stored never changes, and a run follows the version with which it began.
func TestVersionsDoNotChange(t *testing.T) {
	s := newStage(t)
	text := func(value string) string {
		return `{"id":"v","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"wait","executor":{"type":"wait"}},
			{"name":"out","executor":{"type":"set","values":{"v":"` + value + `"}},"dependencies":["wait"]}]}}]}}`
	}
	if got := s.put(text("one")); got != (flow.Stored{ID: "v", Version: "1", New: true}) {
		t.Errorf("Put returns %+v", got)
	}
	if got := s.put(text("one")); got != (flow.Stored{ID: "v", Version: "1"}) {
		t.Errorf("Put again returns %+v", got)
	}
	id := s.enqueue("flow.v", "")
	s.drain()
	if got := s.put(text("two")); got.Version != "2" || !got.New {
		t.Errorf("Put of another text returns %+v", got)
	}
	if _, err := flow.Put(s.ctx, s.q, []byte(`{"version":"1",`+text("three")[1:])); !errors.Is(err, refusal.ErrConflict) {
		t.Errorf("Put of another text for version 1 returns %v", err)
	}
	if _, err := s.q.Resolve(s.ctx, id+".wait", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	s.drain()
	if r := s.get(id); string(r.Result) != `{"outputs":{"parameters":{"v":"one"}}}` {
		t.Errorf("the run ended with %s%s", r.Result, r.Error)
	}
}
