package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// versionOf returns a version of a definition: a loop of 30 rounds, so that there are checkpoints, and a part.
func versionOf(n int) string {
	return fmt.Sprintf(`{"id":"v","spec":{"entrypoint":"main","templates":[
		{"name":"main","dag":{"tasks":[{"name":"rounds%[1]d","template":"rounds"},{"name":"out","executor":{"type":"set","values":{"v":"version %[1]d"}},"dependencies":["rounds%[1]d"]}]}},
		{"name":"rounds","loop":{"until":"index >= 29","limit":30,"task":{"executor":{"type":"x%[1]d"}}}}]}}`, n)
}

// A run follows the version with which it began to its end, also when workers take turns and one of them began after the
// definition changed, so that it has never read the old version.
func TestRunsOfOldVersionsAreFinishedByAnyWorker(t *testing.T) {
	s := newStage(t)
	x := func(context.Context, any) (any, error) { return nil, nil }
	s.put(versionOf(1))
	worker.Handle(s.w, "x1", x)
	old := s.enqueue("flow.v", "")
	for range 7 {
		if _, err := s.w.RunOne(s.ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.put(versionOf(2))
	fresh := s.enqueue("flow.v", "")
	workers := []*worker.Worker{s.w, worker.New(s.q, worker.Config{})}
	worker.Handle(s.w, "x2", x)
	worker.Handle(workers[1], "x1", x)
	worker.Handle(workers[1], "x2", x)
	flow.Register(workers[1])
	for idle, turn := 0, 0; idle < 2; turn++ {
		ran, err := workers[turn%2].RunOne(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if idle++; ran != nil {
			idle = 0
		}
	}
	for id, want := range map[string]string{old: "1", fresh: "2"} {
		if r := s.get(id); string(r.Result) != `{"outputs":{"parameters":{"v":"version `+want+`"}}}` {
			t.Errorf("a run of version %s is %s with %s%s", want, r.Status, r.Result, r.Error)
		}
		if r := s.get(id + ".rounds" + want + ".round__29"); r.Node.Version != want || r.Status != queue.Completed {
			t.Errorf("its last round is %s, of version %s", r.Status, r.Node.Version)
		}
	}
}

// A newer program stores a definition with a field that this one does not know. A run of it is not failed: it waits for a worker
// that can read it. The field says so.
func TestARunOfANewerDefinitionWaitsForAWorkerThatCanReadIt(t *testing.T) {
	s := newStageOn(t, redistest.Start(t).Client(t)) // its own server: the test changes what is stored
	s.put(versionOf(1))
	begun := s.enqueue("flow.v", "")
	if _, err := s.w.RunOne(s.ctx); err != nil { // it has begun
		t.Fatal(err)
	}
	newer := strings.Replace(versionOf(2), `"until"`, `"while_shining":true,"until"`, 1)
	if err := s.q.Client().HSet(s.ctx, s.q.Root(0)+":flow:v", "2", newer).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.q.Client().HSet(s.ctx, s.q.Root(0)+":flows", "v", "1 2").Err(); err != nil {
		t.Fatal(err)
	}
	id := s.enqueue("flow.v", "")
	worker.Handle(s.w, "x1", func(context.Context, any) (any, error) { return nil, nil })
	s.drain()
	if r := s.get(begun); r.Status != queue.Completed {
		t.Errorf("the run of the version that can be read is %s", r.Status)
	}
	r := s.get(id)
	if r.Status != queue.Pending || r.Retries != 0 || r.AvailableAt.Before(time.Now().Add(time.Second)) || r.Deadline.IsZero() {
		t.Fatalf("the run is %s after %d retries, and runs again at %v", r.Status, r.Retries, r.AvailableAt)
	}
	why, err := inspect.Explain(s.ctx, s.q, id)
	if err != nil || !strings.Contains(why.ReleaseReason, "version 2 of the flow v cannot be read by this version of the program") || !strings.Contains(why.ReleaseReason, "while_shining") {
		t.Errorf("the reason is %q, %v", why.ReleaseReason, err)
	}
	if _, err := flow.Start(s.ctx, s.q, "v", nil, "", queue.Task{}); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "cannot be read by this version") {
		t.Errorf("Start returns %v", err)
	}
	// A worker that can read it finishes the run. The version that the run has fixed is the same.
	if err := s.q.Client().HSet(s.ctx, s.q.Root(0)+":flow:v", "2", versionOf(2)).Err(); err != nil {
		t.Fatal(err)
	}
	able := worker.New(s.q, worker.Config{})
	flow.Register(able)
	worker.Handle(able, "x2", func(context.Context, any) (any, error) { return nil, nil })
	ctx, stop := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- able.Run(ctx) }()
	if got, err := s.q.Result(s.ctx, id); err != nil || !strings.Contains(string(got), "version 2") {
		t.Errorf("the run has %s, %v", got, err)
	}
	stop()
	<-done
}
