package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

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
