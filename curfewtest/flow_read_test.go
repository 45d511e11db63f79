package curfewtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// flowRun puts a definition, begins a run of it, and runs what can run.
func flowRun(t *testing.T, c *curfewtest.Stage, id, text string) string {
	t.Helper()
	flow.Register(c.Worker)
	if _, err := flow.Put(t.Context(), c.Queue, []byte(text)); err != nil {
		t.Fatal(err)
	}
	r, err := flow.Start(t.Context(), c.Queue, id, nil, "", queue.Task{})
	if err != nil {
		t.Fatal(err)
	}
	c.Drain()
	return r.ID
}

// waitsOf returns a graph of three waits whose tokens meet.
func waitsOf(more, wait, synchronization string) string {
	return `{"id":"w"` + more + `,"nodes":[{"id":"s","action_id":"e"},{"id":"a","action_id":"w"` + wait + `},{"id":"m","action_id":"e"}],"actions":[{"id":"e","kind":"echo"},{"id":"w","kind":"wait"}],
	"transitions":[{"id":"f","from":"s","to":"a","fan_out":{"spawn_count":3}},{"from":"a","to":"m","synchronization":{"strategy":"all","sibling_group":"f"` + synchronization + `}}]}`
}

// The limit of a fan-in that continues with what has come decides for the run, too.
func TestAFanInThatContinuesDecides(t *testing.T) {
	c := curfewtest.New(t, curfewtest.Config{})
	id := flowRun(t, c, "w", waitsOf("", "", `,"timeout_ms":5000,"on_timeout":"proceed_with_available"`))
	if err := flow.Resume(t.Context(), c.Queue, id, "a/b1", nil); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	node, at, sentence := flow.Decides(readRun(t, c, id))
	if want := "The run waits for node a (a/b0), whose siblings wait for it before m and are out of time in 5s; then they continue without it."; node != "a/b0" || !at.Equal(c.Now().Add(5*time.Second)) || sentence != want {
		t.Errorf("%s at %v: %s\nwant %s", node, at, sentence, want)
	}
	c.Advance(5001 * time.Millisecond)
	c.Drain()
	if r := readRun(t, c, id); r.Phase != flow.Succeeded {
		t.Errorf("the run is %s", r.Phase)
	}
}

// A run that no worker has begun has nodes that nothing is before, and they do not wait yet.
func TestResumeBeforeTheRunBegins(t *testing.T) {
	c := curfewtest.New(t, curfewtest.Config{})
	if _, err := flow.Put(t.Context(), c.Queue, []byte(`{"id":"r","spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[{"name":"w","executor":{"type":"wait"}}]}}]}}`)); err != nil {
		t.Fatal(err)
	}
	r, err := flow.Start(t.Context(), c.Queue, "r", nil, "", queue.Task{})
	if err != nil {
		t.Fatal(err)
	}
	err = flow.Resume(t.Context(), c.Queue, r.ID, "w", nil)
	if want := "w does not wait yet: resume it when a worker has continued the run"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A limit of a node at the same instant as that of its run is one of its own.
func TestALimitAtTheEndOfTheRun(t *testing.T) {
	for wait, want := range map[string]string{
		`,"timeout":"5s"`: "The run waits for node a (a/b0), which is out of time in 5s, and so is the run.",
		``:                "The run waits for node a (a/b0), which has no limit of its own; the run is out of time in 5s.",
	} {
		c := curfewtest.New(t, curfewtest.Config{})
		id := flowRun(t, c, "w", waitsOf(`,"timeout_ms":5000`, wait, ``))
		if _, _, sentence := flow.Decides(readRun(t, c, id)); sentence != want {
			t.Errorf("%s: %s, want %s", wait, sentence, want)
		}
	}
}

// Of two tokens that end in the same ms, the one that was first decides, and a reading shows what followed from it: while its task is in line,
// and when the run has ended.
func TestTheFirstOfTwoEndsOfOneInstant(t *testing.T) {
	for _, first := range []int{0, 1} {
		c := curfewtest.New(t, curfewtest.Config{})
		worker.Handle(c.Worker, "work", func(context.Context, any) (string, error) { return "x", nil })
		id := flowRun(t, c, "m", `{"id":"m","nodes":[{"id":"a","action_id":"e"},{"id":"b","action_id":"w"},{"id":"s","action_id":"e"},{"id":"z0","action_id":"work"},{"id":"z1","action_id":"work"}],
			"actions":[{"id":"e","kind":"echo"},{"id":"w","kind":"wait"},{"id":"work","kind":"work"}],
			"transitions":[{"id":"t","from":"a","to":"b","fan_out":{"spawn_count":2}},{"from":"b","to":"s","synchronization":{"strategy":"any","sibling_group":"t"}},
			{"from":"s","to":"z0","condition":"state.results[0].who == 0"},{"from":"s","to":"z1","condition":"state.results[0].who == 1"}]}`)
		for _, who := range []int{first, 1 - first} {
			if err := flow.Resume(t.Context(), c.Queue, id, fmt.Sprintf("b/b%d", who), map[string]any{"who": who}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Worker.RunOne(t.Context()); err != nil { // the run, and not yet its node
			t.Fatal(err)
		}
		z := fmt.Sprintf("z%d", first)
		if node, _, sentence := flow.Decides(readRun(t, c, id)); node != z {
			t.Errorf("the run waits for %q, want %s: %s", node, z, sentence)
		}
		c.Drain()
		var all []string
		for _, n := range readRun(t, c, id).Nodes[4-1:] {
			all = append(all, n.Key+" "+string(n.Phase)+n.Msg)
		}
		want := []string{"s Succeeded", "z0 Succeeded", "z1 Created"}
		if first == 1 {
			want = []string{"s Succeeded", "z0 Created", "z1 Succeeded"}
		}
		if got := strings.Join(all, ", "); got != strings.Join(want, ", ") {
			t.Errorf("the run has %s, want %s", got, strings.Join(want, ", "))
		}
	}
}

func readRun(t *testing.T, c *curfewtest.Stage, id string) *flow.Run {
	t.Helper()
	r, err := flow.Read(t.Context(), c.Queue, id, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
