package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// reap runs reapers until the end of the test.
func (s *stage) reap(n int) {
	ctx, stop := context.WithCancel(s.ctx)
	var reapers sync.WaitGroup
	for range n {
		reapers.Go(func() {
			if err := reaper.New(s.q, reaper.Config{}).Run(ctx); err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
		})
	}
	s.t.Cleanup(func() { stop(); reapers.Wait() })
}

// end returns a task when it has ended.
func (s *stage) end(id string) *queue.Record {
	s.t.Helper()
	r, err := s.q.Wait(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// A run that is out of time calls the hook of its definition for timeouts once, however many reapers end it. Another run
// keeps the hook that its own caller gave.
func TestARunThatIsOutOfTimeCallsItsHookOnce(t *testing.T) {
	s := newStage(t)
	s.put(`
id: overdue
timeout: 1s
hooks: {on_timeout: {kind: report, queue: alerts}, on_failure: {kind: other}}
spec:
  entrypoint: main
  templates: [{name: main, dag: {tasks: [{name: never, executor: {type: wait}}]}}]
`)
	id := s.enqueue("flow.overdue", "")
	own, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "flow.overdue", Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "own"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.reap(8)
	if r := s.end(id); !r.TimedOut {
		t.Errorf("the run is %s: %s%s", r.Status, r.Result, r.Error)
	}
	hook := s.get(id + "!timeout")
	var told queue.HookPayload
	if err := json.Unmarshal(hook.Payload, &told); err != nil || hook.Kind != "report" || hook.Queue != "alerts" || told.TaskID != id || told.Kind != "flow.overdue" {
		t.Errorf("the hook is %s of %s, and tells %s", hook.Kind, hook.Queue, hook.Payload)
	}
	for _, event := range []string{"failure", "cancel", "success"} {
		if _, err := s.q.Get(s.ctx, id+"!"+event); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("a hook for %s: %v", event, err)
		}
	}
	stats, err := s.q.Stats(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := slices.IndexFunc(stats.Queues, func(of queue.QueueStats) bool { return of.Queue == "alerts" }); n < 0 || stats.Queues[n].Enqueued != 1 {
		t.Errorf("the queues are %+v, want 1 task in alerts", stats.Queues)
	}
	s.end(own.ID)
	if r := s.get(own.ID + "!timeout"); r.Kind != "own" {
		t.Errorf("the hook of the other run is of kind %s", r.Kind)
	}
}

// A run that is out of time is a timeout of its own layer. on_timeout says what it is for a run that calls it: with
// cancel_all a timeout, with fail a failure whose error reaches the caller. Its nodes end with it in both cases.
func TestOnTimeoutOfARun(t *testing.T) {
	for _, c := range []struct {
		policy, text string
		phase        string // of the node that calls the run
		tolerated    string
	}{
		{"cancel_all", "Task exceeded deadline", "Timeout", "timeout"},
		{"fail", "Workflow exceeded timeout", "Failed", "failed"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			s := newStage(t)
			s.put(`{"id":"slow","timeout":"4s","on_timeout":"` + c.policy + `","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"never","executor":{"type":"wait"}}]}}]}}`)
			calls := func(id, excuse string) string {
				s.put(`{"id":"` + id + `","timeout":"1h","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[
					{"name":"child","executor":{"type":"workflow_call","workflow":"slow"},"continueOn":{"` + excuse + `":true}},
					{"name":"seen","executor":{"type":"set","values":{"phase":"{{ tasks.child.phase }}"}},"dependencies":["child"]}]}}]}}`)
				return s.enqueue("flow."+id, "")
			}
			whole, one, two := s.enqueue("flow.slow", ""), calls("a", "timeout"), calls("b", "failed")
			s.drain()
			s.reap(2)
			for _, id := range []string{whole, one + ".child", two + ".child"} {
				r := s.end(id)
				if r.Status != queue.Failed || !r.TimedOut || r.TimeoutType != queue.TimeoutWorkflow || r.Error != c.text || r.CompletedAt.Sub(r.CreatedAt) != 4*time.Second {
					t.Errorf("the run is %s (%s), %s, after %v", r.Status, r.TimeoutType, r.Error, r.CompletedAt.Sub(r.CreatedAt))
				}
				var failed *queue.TaskFailedError
				if _, err := r.Outcome(); errors.As(err, &failed) != (c.policy == "fail") {
					t.Errorf("the result of the run is %v", err)
				}
				if n := s.end(id + ".never"); n.TimeoutType != queue.TimeoutWorkflow || !n.CompletedAt.Equal(r.CompletedAt) {
					t.Errorf("its node ended by %s at %v, want workflow at %v", n.TimeoutType, n.CompletedAt, r.CompletedAt)
				}
				if e := s.event("task_timed_out", id+".never"); e["definition"] != "slow" || e["version"] != "1" || e["node"] != "never" {
					t.Errorf("the event of the node says %v", e)
				}
				if n := s.get(id + ".never").Node; n != (queue.Node{Definition: "slow", Version: "1", Name: "never"}) {
					t.Errorf("the record of the node says %v", n)
				}
				if e := s.event("task_timed_out", id); e["timeout_type"] != "workflow" || e["policy_applied"] != c.policy || e["reason"] != "workflow_timeout" || e["timeout_duration_ms"] != "4000" {
					t.Errorf("the event says %v", e)
				}
			}
			s.drain()
			for id, excuse := range map[string]string{one: "timeout", two: "failed"} {
				if r := s.end(id); excuse == c.tolerated {
					if want := `{"outputs":{"parameters":{"phase":"` + c.phase + `"}}}`; string(r.Result) != want {
						t.Errorf("the run that tolerates %s has %s%s, want %s", excuse, r.Result, r.Error, want)
					}
				} else if r.Status != queue.Failed || !strings.Contains(r.Error, c.text) {
					t.Errorf("the run that tolerates %s is %s: %s, want FAILED by %q", excuse, r.Status, r.Error, c.text)
				}
			}
		})
	}
}

// event returns the fields of the only event of a kind and a task.
func (s *stage) event(kind, task string) map[string]string {
	s.t.Helper()
	all, err := events.Recent(s.ctx, s.q, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	var found []map[string]string
	for _, e := range all {
		if e.Kind == kind && e.TaskID == task {
			found = append(found, e.Fields)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d events %s of %s: %v", len(found), kind, task, found)
	}
	return found[0]
}
