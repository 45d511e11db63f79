package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// definitionFile has a definition: a page is rendered, reviewed and published.
const definitionFile = "testdata/publish.yaml"

// oneDefinition returns the definition of the file with another kind of leaf.
func oneDefinition(kind string) string {
	return "id: publish\nversion: \"1\"\nspec:\n  entrypoint: main\n  templates:\n  - {name: main, executor: {type: " + kind + "}}\n"
}

// startRun stores the definition of the file, and starts a run 0-RUN that waits for its first leaf.
func startRun(t *testing.T, q *queue.Queue) (id string) {
	t.Helper()
	text, err := os.ReadFile(definitionFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Put(t.Context(), q, text); err != nil {
		t.Fatal(err)
	}
	id = queuetest.Enqueue(t, q, queue.Task{ID: "0-RUN", Kind: "flow.publish", Queue: "flows", Payload: []byte(`{"parameters":{"page":1}}`)}).ID
	runFlows(t, q)
	return id
}

// runFlows runs what can run of flows.
func runFlows(t *testing.T, q *queue.Queue) {
	t.Helper()
	w := worker.New(q, worker.Config{Queues: map[string]int{"flows": 1}})
	flow.Register(w)
	for {
		ran, err := w.RunOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ran == nil {
			return
		}
	}
}

// Each file is what a command prints of a definition, or of a run whose page is rendered, reviewed and being published.
func TestOutputsOfFlowsAreThoseOfTestdata(t *testing.T) {
	server := redistest.Embedded(t)
	server.SetTime(testclock.Start)
	q := queuetest.Open(t, server.Client(), queue.Config{Namespace: "shop"})
	id := startRun(t, q)
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	server.SetTime(testclock.Start.Add(20 * time.Second))
	w.Settle(t, queue.Outcome{ID: id + ".render", Epoch: w.Take(t, id+".render", "pages").Epoch, Verb: queue.Complete, Result: []byte(`{"url":"/1"}`)})
	runFlows(t, q)
	goldenOutputs(t, "redis://"+server.Addr(), []struct{ file, args string }{{"flow_get_review", "flow get 0-RUN"}})
	if err := flow.Resume(t.Context(), q, id, "review", map[string]any{"by": "ada"}); err != nil {
		t.Fatal(err)
	}
	runFlows(t, q)
	w.Take(t, id+".publish.upload", "pages")
	goldenOutputs(t, "redis://"+server.Addr(), []struct{ file, args string }{
		{"flow_ls", "flow ls"}, {"flow_show", "flow show publish"}, {"flow_get", "flow get 0-RUN"}, {"flow_graph", "flow graph 0-RUN"}, {"flow_graph_definition", "flow graph publish"},
		{"flow_check", "flow check " + definitionFile + " --explain"}, {"flow_runs", "flow runs publish"},
	})
}

// A definition with faults: each is a line with the file, the line and the path, and nothing is stored.
func TestCheckPrintsAllFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	text := "id: wrong\nspeck: {}\nspec:\n  entrypoint: mian\n  templates:\n  - name: main\n    executor: {type: k}\n    timeout: soon\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := curfew(t, "flow", "check", file, definitionFile)
	want := []string{file + ":2: speck: is not a field here", file + ":4: spec.entrypoint: there is no template \"mian\": did you mean main?", file + ":8: spec.templates[0].timeout: "}
	got := strings.Split(strings.TrimSpace(out), "\n")
	if code != app.ExitFailed || len(got) != len(want) || !strings.Contains(errs, "1 definition is wrong") {
		t.Fatalf("exit %d, %s%s, want %q", code, out, errs, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("the line is %q, want %q", got[i], want[i])
		}
	}
	q, url := namespace(t, 0)
	if code, out, errs := curfew(t, "flow", "put", definitionFile, file, "--redis", url); code != app.ExitUsage || out != "" || !strings.Contains(errs, "nothing was stored: "+file+":2: ") || !strings.Contains(errs, "2 more faults") {
		t.Errorf("put: exit %d, %s%s", code, out, errs)
	}
	if all, err := flow.List(t.Context(), q); err != nil || len(all) > 0 {
		t.Errorf("put has stored %v, %v", all, err)
	}
}

// A definition can have any name, also that of a command of a library: h and help.
func TestAnyNameIsAcceptedByTheCommands(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 0)
	for _, id := range []string{"h", "help"} {
		if _, err := flow.Put(t.Context(), q, []byte(strings.Replace(oneDefinition("k"), "id: publish", "id: "+id, 1))); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := curfew(t, "flow", "show", id, "--redis", url); code != 0 || !strings.HasPrefix(out, "id: "+id+"\n") {
			t.Errorf("show %s: exit %d, %s%s", id, code, out, errs)
		}
		if code, out, errs := curfew(t, "flow", "run", id, "--id", "0-"+id, "--redis", url); code != 0 || out != "0-"+id+"\n" {
			t.Errorf("run %s: exit %d, %s%s", id, code, out, errs)
		}
	}
}

// A worker process runs a definition: curfew work --flows follows it, and the command after -- runs its leaves.
func TestAWorkerRunsFlows(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	do := func(code int, args ...string) string {
		t.Helper()
		got, out, errs := curfew(t, append(args, "--redis", s.url, "--namespace", s.q.Namespace())...)
		if got != code {
			t.Fatalf("curfew %q: exit %d, %s%s, want %d", args, got, out, errs, code)
		}
		return strings.TrimSpace(out)
	}
	do(0, "flow", "put", definitionFile)
	s.start("--flows", "--queue", "default", "--queue", "pages", "--kind", "render", "--kind", "upload", "--kind", "mail", "--", "cat")
	id := do(0, "flow", "run", "publish", "-p", "page=7")
	await.Until(t, "the page is rendered", func() bool {
		r, err := flow.Read(t.Context(), s.q, id, true)
		return err == nil && r.Nodes[0].Phase == flow.Succeeded
	})
	watched := start(t, "flow get "+id+" --watch --every 100ms --redis "+s.url+" --namespace "+s.q.Namespace())
	watched.until(t, `publish +Created +- +- +waits for .*review`)
	do(0, "flow", "resume", id, "review", "--value", `{"by":"ada"}`)
	if code := await.Receive(t, watched.ended, "the end of --watch"); code != 0 {
		t.Errorf("--watch: exit %d, %s", code, watched.errs.String())
	}
	watched.until(t, `\n`+id+` +publish +version 1 +Succeeded +took `)
	if out := do(0, "wait", id); !strings.Contains(out, "COMPLETED") {
		t.Errorf("the run has ended with %s", out)
	}
	do(app.ExitRefused, "flow", "resume", id, "review")
	do(app.ExitRefused, "flow", "cancel", id)
	do(app.ExitRefused, "flow", "cancel", id+".publish")
}

// --wait has the exit codes of a task, and a run that is cancelled ends with its nodes.
func TestTheExitCodeOfAWaitForARun(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 0)
	startRun(t, q)
	if code, _, errs := curfew(t, "flow", "run", "publish", "-p", "page=1", "--id", "0-LATE", "--timeout", "100ms", "--wait", "--redis", url); code != app.ExitTimedOut || !strings.Contains(errs, "exceeded") {
		t.Errorf("a run out of time: exit %d, %s", code, errs)
	}
	if _, out, _ := curfew(t, "flow", "get", "0-LATE", "--json", "--redis", url); !strings.Contains(out, `"reason":"workflow_timeout"`) {
		t.Errorf("the run out of time is printed as %s", out)
	}
	if code, out, errs := curfew(t, "flow", "cancel", "0-RUN", "--reason", "wrong page", "--redis", url); code != 0 || !strings.Contains(out, "cancelled") {
		t.Errorf("cancel: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := curfew(t, "wait", "0-RUN", "--redis", url); code != app.ExitFailed || !strings.Contains(errs, "wrong page") {
		t.Errorf("wait: exit %d, %s", code, errs)
	}
	if r, err := q.Get(t.Context(), "0-RUN.render"); err != nil || r.Status != queue.Cancelled && !r.Overdue { // whoever sweeps first ends it
		t.Errorf("a node of the cancelled run is %v, %v", r, err)
	}
	task := queuetest.Enqueue(t, q, queue.Task{Kind: "k"}).ID
	if code, _, errs := curfew(t, "flow", "cancel", task, "--redis", url); code != app.ExitRefused || !strings.Contains(errs, "no run of a flow") {
		t.Errorf("cancel of another task: exit %d, %s", code, errs)
	}
	if r, err := q.Get(t.Context(), task); err != nil || r.Status != queue.Pending {
		t.Errorf("a task that is no run is %v, %v", r, err)
	}
}
