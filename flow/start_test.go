package flow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// takes returns a definition that needs the parameter user, and has a value for the parameter limit.
func takes(value string) string {
	return fmt.Sprintf(`{"id":"takes","spec":{"entrypoint":"main","templates":[{"name":"main",
		"inputs":{"parameters":[{"name":"user"},{"name":"limit","value":5}]},"executor":{"type":"set","values":{"v":"%s {{ inputs.parameters.user }}"}}}]}}`, value)
}

// Start refuses what a run could not begin with, and then enqueues nothing.
func TestStartChecksTheRun(t *testing.T) {
	s := newStage(t)
	s.put(takes("one"))
	s.put(takes("two"))
	for _, test := range []struct {
		id, version string
		parameters  map[string]any
		more        queue.Task
		is          error
		want        string
	}{
		{"taks", "", nil, queue.Task{}, refusal.ErrNotFound, "did you mean takes?"},
		{"takes", "7", nil, queue.Task{}, refusal.ErrNotFound, "the newest of its 2 versions is 2"},
		{"takes", "a b", nil, queue.Task{}, refusal.ErrNotFound, "there is no version a b"},
		{"0-NO", "", nil, queue.Task{}, refusal.ErrNotFound, "there is no flow 0-NO"},
		{"", "", nil, queue.Task{}, refusal.ErrNotFound, "there is no flow "},
		{"takes", "", nil, queue.Task{}, refusal.ErrInvalid, "parameters are without user"},
		{"takes", "", map[string]any{"user": 1, "limti": 2}, queue.Task{}, refusal.ErrInvalid, "limti, which the definition does not know: did you mean limit?"},
		{"takes", "", map[string]any{"user": 1, "x": 2}, queue.Task{}, refusal.ErrInvalid, "the definition takes limit, user"},
		{"takes", "", map[string]any{"user": func() {}}, queue.Task{}, refusal.ErrInvalid, "cannot be written as JSON"},
		{"takes", "", map[string]any{"user": 1}, queue.Task{Kind: "other"}, refusal.ErrInvalid, "kind other must be left out"},
		{"takes", "", map[string]any{"user": 1}, queue.Task{Payload: []byte("{}")}, refusal.ErrInvalid, "payload must be left out"},
	} {
		r, err := flow.Start(s.ctx, s.q, test.id, test.parameters, test.version, test.more)
		if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.want) || r.ID != "" {
			t.Errorf("Start(%s %s %v) returns %q and %v, want %s", test.id, test.version, test.parameters, r.ID, err, test.want)
		}
	}
	if stats, err := s.q.Stats(s.ctx); err != nil || len(stats.Queues) > 0 {
		t.Fatalf("a run was enqueued: %+v %v", stats.Queues, err)
	}
	r, err := flow.Start(s.ctx, s.q, "takes", map[string]any{"user": "ada"}, "1", queue.Task{Priority: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.drain()
	if got := s.get(r.ID); string(got.Result) != `{"outputs":{"parameters":{"v":"one ada"}}}` || got.Priority != 2 {
		t.Errorf("the run ended with %s%s, priority %d", got.Result, got.Error, got.Priority)
	}
}

// List returns the versions in the order in which they were put, whatever they are called.
func TestListHasTheVersionsInTheirOrder(t *testing.T) {
	s := newStage(t)
	if all, err := flow.List(s.ctx, s.q); err != nil || len(all) != 0 {
		t.Fatalf("List of nothing returns %v, %v", all, err)
	}
	var want []string
	for i := range 150 {
		version := fmt.Sprintf("v%d", (i*37)%150)
		want = append(want, version)
		s.put(strings.Replace(takes(version), `{"id":"takes"`, `{"id":"takes","version":"`+version+`"`, 1))
	}
	s.put(strings.Replace(takes("x"), `"id":"takes"`, `"id":"another"`, 1))
	want = append(want, "1")
	s.put(takes("y"))
	s.put(strings.Replace(takes("v37"), `{"id":"takes"`, `{"id":"takes","version":"v37"`, 1)) // again
	all, err := flow.List(s.ctx, s.q)
	if err != nil || len(all) != 2 || all[0].ID != "another" || all[1].ID != "takes" || all[1].Version != "1" || !slices.Equal(all[1].Versions, want) {
		t.Errorf("List returns %v, %v", all, err)
	}
}

// Check finds all faults, and stores nothing.
func TestCheckStoresNothing(t *testing.T) {
	s := newStage(t)
	if err := flow.Check([]byte(takes("x"))); err != nil {
		t.Error(err)
	}
	var faults flow.Faults
	err := flow.Check([]byte(`{"id":"takes","tiemout":"1s","spec":{"entrypoint":"mian","templates":[{"name":"main","executor":{"type":"x"}}]}}`))
	if !errors.As(err, &faults) || len(faults) != 2 || !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("Check returns %v", err)
	}
	if all, err := flow.List(s.ctx, s.q); err != nil || len(all) != 0 {
		t.Errorf("List returns %v, %v", all, err)
	}
}

// Runs lists the runs of one definition with the filters of inspect.List, and no parts of runs.
func TestRunsOfADefinition(t *testing.T) {
	s := newStage(t)
	s.put(diamond)
	s.put(takes("x"))
	var ids []string
	for range 3 {
		ids = append(ids, s.enqueue("flow.diamond", `{"parameters":{"n":1}}`))
	}
	s.enqueue("flow.takes", `{"parameters":{"user":1}}`)
	if _, err := s.q.Cancel(s.ctx, ids[0], ""); err != nil {
		t.Fatal(err)
	}
	list := func(f inspect.Filter) (all []string) {
		t.Helper()
		page, err := flow.Runs(s.ctx, s.q, "diamond", f, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range page.Lines {
			all = append(all, line.ID)
		}
		return all
	}
	if got := list(inspect.Filter{}); !slices.Equal(got, []string{ids[2], ids[1], ids[0]}) {
		t.Errorf("Runs returns %v, want the newest of %v first", got, ids)
	}
	if got := list(inspect.Filter{Statuses: []queue.Status{queue.Cancelled}}); !slices.Equal(got, ids[:1]) {
		t.Errorf("Runs that were cancelled: %v", got)
	}
	if _, err := flow.Runs(s.ctx, s.q, "diamond", inspect.Filter{Kind: "other"}, "", 1); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("Runs with a kind returns %v", err)
	}
}
