package random

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Two definitions with each kind of body: DAGs, both loops, a wrapper that is tried again, a graph with a fan-out and a fan-in, and
// each executor that makes a task.
var everything = []string{`
id: everything
timeout: 2m
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: first, executor: {type: once}, retry: {limit: 1}, inputs: {parameters: [{name: v, value: 1}]}}
      - {name: nap, executor: {type: sleep, duration: 1ms}, dependencies: [first]}
      - {name: asked, executor: {type: wait, signal: go}, dependencies: [first]}
      - {name: rounds, template: rounds, dependencies: [first], inputs: {parameters: [{name: v, value: "{{ tasks.first.outputs.parameters.v }}"}]}}
      - {name: items, template: items, dependencies: [nap, asked]}
      - {name: again, template: again, dependencies: [items], retry: {limit: 2}}
      - {name: spread, executor: {type: workflow_call, workflow: spread}, dependencies: [rounds]}
      - name: sum
        executor: {type: set, values: {by: "{{ tasks.asked.outputs.parameters.by }}", rounds: "{{ tasks.rounds.outputs.parameters.v }}", again: "{{ tasks.again.outputs.parameters.v }}", spread: "{{ tasks.spread.outputs.parameters.v }}"}}
        dependencies: [rounds, again, spread]
  - name: rounds
    inputs: {parameters: [{name: v}]}
    loop: {until: "index >= 21", limit: 30, task: {executor: {type: step}, inputs: {parameters: [{name: v, value: "{{ inputs.parameters.v + index }}"}]}}}
  - name: items
    loop: {items: [1, 2, 3], parallel: 2, task: {executor: {type: step}, inputs: {parameters: [{name: v, value: "{{ item }}"}]}}}
  - name: again
    task: {template: inner}
  - name: inner
    dag:
      tasks:
      - {name: a, executor: {type: step}, inputs: {parameters: [{name: v, value: 5}]}}
      - {name: b, executor: {type: second}, dependencies: [a], inputs: {parameters: [{name: v, value: "{{ tasks.a.outputs.parameters.v }}"}]}}
`, `
id: spread
nodes: [{id: a, action_id: step}, {id: b, action_id: step}, {id: c, action_id: step}]
actions: [{id: step, kind: step}]
transitions:
- {id: t, from: a, to: b, fan_out: {spawn_count: 3}}
- {from: b, to: c, synchronization: {strategy: all, sibling_group: t, timeout_ms: 60000, merge: {source: _branch.output.v, target: state.r, strategy: keyed_by_branch}}}
output: {v: "{{ state.r }}"}
`}

const killVariable = "CURFEW_RANDOM_KILL"

// killer is a hook of a client that kills its process when Redis has answered the n-th call, and before the process handles the answer.
// So what that call has changed is there, and nothing has followed from it. It prints the number of each call.
type killer struct{ calls, at atomic.Int64 }

func (k *killer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (k *killer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		k.called()
		return err
	}
}

func (k *killer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		k.called()
		return err
	}
}

func (k *killer) called() {
	n := k.calls.Add(1)
	if n == k.at.Load() {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {} // until the signal arrives
	}
	fmt.Println("call", n)
}

// doomed is a worker process that is killed at a call. It runs one task at a time.
func doomed(rdb *redis.Client, q *queue.Queue) {
	effects := redis.NewClient(rdb.Options()) // without the hook
	k := &killer{}
	at, _ := strconv.Atoi(os.Getenv(killVariable))
	k.at.Store(int64(at))
	rdb.AddHook(k)
	steady(q, effects).Run(context.Background())
}

// steady returns a worker of both definitions.
func steady(q *queue.Queue, effects redis.UniversalClient) *worker.Worker {
	w := worker.New(q, worker.Config{Concurrency: 1, Lease: time.Second})
	flow.Register(w)
	type value struct {
		V int `json:"v"`
	}
	step := func(ctx context.Context, in value) (value, error) {
		_, place, _ := strings.Cut(worker.Info(ctx).ID, ".")
		return value{in.V + 1}, effects.HIncrBy(ctx, "effects:"+q.Namespace(), place, 1).Err()
	}
	worker.Handle(w, "step", step)
	worker.Handle(w, "once", func(ctx context.Context, in value) (value, error) {
		out, err := step(ctx, in)
		if err == nil && worker.Info(ctx).Retries == 0 {
			err = errors.New("broken")
		}
		return out, err
	})
	worker.Handle(w, "second", func(ctx context.Context, in value) (value, error) {
		out, err := step(ctx, in)
		if err == nil && !strings.Contains(worker.Info(ctx).ID, "__r2") {
			err = errors.New("useless")
		}
		return out, err
	})
	return w
}

// doomedRun is a run that a process begins and does not finish.
type doomedRun struct {
	*harness.Stage
	id    string
	child *harness.Child
	at    int
}

func beginDoomed(t *testing.T, addr string, at int) *doomedRun {
	t.Helper()
	r := &doomedRun{Stage: harness.New(t, addr, queue.Config{Events: queue.EventsAll}), at: at}
	for _, text := range everything {
		if _, err := flow.Put(t.Context(), r.Q, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r.id = r.Enqueue(queue.Task{Kind: "flow.everything", Payload: []byte(`{"parameters":{}}`)})[0]
	if _, err := agentwait.SendSignal(t.Context(), r.Q, r.id, "go", map[string]string{"by": "ann"}); err != nil {
		t.Fatal(err)
	}
	r.child = r.Spawn("doomed", killVariable+"="+strconv.Itoa(at))
	return r
}

// outlive waits until the process is dead or the run has ended. Then a worker that nobody kills takes over.
func (r *doomedRun) outlive() (died bool) {
	r.Helper()
	ended, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Q.Result(ended, r.id) // the run is compared later
	}()
	select {
	case <-r.child.Gone:
		died = true
	case <-done:
	case <-time.After(await.Limit(r)):
		r.Fatalf("killed at call %d: neither the process nor the run has ended", r.at)
	}
	cancel()
	<-done
	if died {
		r.Run(steady(r.Another(), r.Redis).Run)
	}
	return died
}

// account is what a run leaves: its result, how its tasks were created, retried and ended, and how often each leaf ran.
type account struct {
	result  string
	events  map[string]int // by place, kind of the event, and node
	effects map[string]string
}

func (r *doomedRun) account() account {
	r.Helper()
	record := r.Ended(r.id)
	a := account{string(record.Result) + record.Error, map[string]int{}, nil}
	for _, e := range r.Events(r.Q) {
		if slices.Contains([]string{"task_enqueued", "task_retried"}, e.Kind) || e.Terminal() || e.Kind == "rejected" {
			a.events[strings.TrimPrefix(e.ID, r.id)+" "+e.Kind+" "+e.Word("definition")+" "+e.Word("node")+" "+e.Word("reason")]++
		}
	}
	var err error
	if a.effects, err = r.Redis.HGetAll(r.Context(), "effects:"+r.Q.Namespace()).Result(); err != nil {
		r.Fatal(err)
	}
	return a
}

// compare compares a run whose process was killed with one whose process was not. The leaf that ran then may have run once more.
func (a account) compare(r *doomedRun, want account) {
	r.Helper()
	if a.result != want.result {
		r.Errorf("killed at call %d: the run has %s, want %s", r.at, a.result, want.result)
	}
	for _, e := range slices.Sorted(maps.Keys(a.events)) {
		if strings.Contains(e, "rejected") {
			delete(a.events, e) // a process that lost the answer to a call repeats it, or another one does
		}
	}
	if !maps.Equal(a.events, want.events) {
		r.Errorf("killed at call %d: %s", r.at, difference(a.events, want.events))
	}
	more := 0
	for place, times := range want.effects {
		got, _ := strconv.Atoi(a.effects[place])
		expected, _ := strconv.Atoi(times)
		if more += got - expected; got < expected {
			r.Errorf("killed at call %d: the leaf %s ran %d times, want %d", r.at, place, got, expected)
		}
	}
	if more > 1 || len(a.effects) != len(want.effects) {
		r.Errorf("killed at call %d: the leaves ran %v times, want %v, and one of them once more", r.at, a.effects, want.effects)
	}
}

// difference lists the events whose numbers differ.
func difference(got, want map[string]int) string {
	var all []string
	keys := maps.Clone(got)
	maps.Copy(keys, want)
	for _, key := range slices.SortedFunc(maps.Keys(keys), cmp.Compare[string]) {
		if got[key] != want[key] {
			all = append(all, fmt.Sprintf("%s: %d, want %d", key, got[key], want[key]))
		}
	}
	return strings.Join(all, "; ")
}

// A worker that is killed after any of its calls changes nothing but time: the run has the same result, the same tasks and the
// same ends.
func TestAWorkerKilledAtAnyCallChangesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	whole := beginDoomed(t, server.Addr, 0)
	if whole.outlive() {
		t.Fatal("the process that nobody kills has died")
	}
	want := whole.account()
	whole.child.Kill()
	calls := 0
	for len(whole.child.Lines) > 0 {
		calls, _ = strconv.Atoi(strings.TrimPrefix(<-whole.child.Lines, "call "))
	}
	t.Logf("a run makes %d calls, has %d events and the result %s", calls, len(want.events), want.result)
	if !strings.Contains(want.result, `"by":"ann"`) || len(want.effects) < 12 {
		t.Fatalf("the run has %s, and its leaves ran %v", want.result, want.effects)
	}
	step := harness.Times(20, 16, 1)
	died := 0
	var points []int
	for at := 1 + rand.IntN(step); at <= calls; at += step {
		points = append(points, at)
	}
	for some := range slices.Chunk(points, 8) {
		var runs []*doomedRun
		for _, at := range some {
			runs = append(runs, beginDoomed(t, server.Addr, at))
		}
		for _, r := range runs {
			if r.outlive() {
				died++
			}
		}
		for _, r := range runs {
			r.account().compare(r, want)
			r.child.Kill()
		}
	}
	t.Logf("%d processes were killed", died)
	if died < len(points)/2 {
		t.Errorf("%d of %d processes were killed", died, len(points))
	}
}
