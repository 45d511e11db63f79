package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestExplainSaysWhyAndByWhen(t *testing.T) {
	q, url := namespace(t, 0)
	a, b := add(t, q), add(t, q)

	code, out, errs := curfew(t, "explain", "--redis", url, a, b)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != 0 || errs != "" || len(lines) != 2 {
		t.Fatalf("exit %d, %q, %q, want one line for each task", code, out, errs)
	}
	for i, id := range []string{a, b} {
		if !strings.HasPrefix(lines[i], id+" (k) is PENDING: it is in line in the queue default as the first. No bound: this can wait without limit;") {
			t.Errorf("%q, want why %s is where it is", lines[i], id)
		}
	}

	code, out, errs = curfew(t, "explain", "--redis", url, "--json", a)
	told := jsonLines(t, out)
	if code != 0 || errs != "" || len(told) != 1 || told[0]["why"] != "in_line" || told[0]["sentence"] != lines[0] {
		t.Errorf("exit %d, %q, %q, want the same as JSON", code, out, errs)
	}

	// The tasks that exist are printed, and the exit code says that one is missing.
	code, out, errs = curfew(t, "explain", "--redis", url, "0-NOBODY", a)
	if code != app.ExitNotFound || out != lines[0]+"\n" || !strings.Contains(errs, "there is no task 0-NOBODY: the id is wrong") {
		t.Errorf("exit %d, %q, %q, want exit 3 and the other one", code, out, errs)
	}
}

func TestExplainRefusesIDsThatAreNotValid(t *testing.T) {
	q, url := namespace(t, 0)
	id := add(t, q)
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "needs the ids of one or more tasks"},
		{[]string{"rubbish"}, `"rubbish" is not a task's id: it is the partition, a dash, letters and digits`},
		{[]string{id, "--jsn"}, `there is no flag --jsn (did you mean --json?)`},
		{[]string{id, "--", "--json"}, `"--json" is not a task's id`},
		{[]string{""}, `"" is not a task's id`},
		{[]string{"0-a\x1b[2J"}, `is not a task's id`},
		{[]string{"7-NOBODY"}, "is in partition 7, but this namespace has 2 partitions"},
	} {
		code, out, errs := curfew(t, append([]string{"explain", "--redis", url}, row.args...)...)
		if code != app.ExitUsage || out != "" || !strings.Contains(errs, row.want) || strings.Contains(errs, "\x1b") {
			t.Errorf("explain %q: exit %d, %q, %q, want exit 2 and %q", row.args, code, out, errs, row.want)
		}
	}
	if code, out, errs := curfew(t, "explain", "--help"); code != 0 || !strings.Contains(out, "ID...") || errs != "" {
		t.Errorf("--help: exit %d, %q, %q", code, out, errs)
	}
}

// The explanation of a run of a flow names the node that decides, by its path, and what happens then.
func TestExplainOfARunNamesTheNode(t *testing.T) {
	q, url := namespace(t, 0)
	ctx := t.Context()
	if _, err := flow.Put(ctx, q, []byte(`{"id":"release","spec":{"entrypoint":"main","templates":[
		{"name":"main","dag":{"tasks":[{"name":"check","template":"review"}]}},
		{"name":"review","dag":{"tasks":[{"name":"approval","timeout":"30m","executor":{"type":"wait"},"continueOn":{"timeout":true}}]}}]}}`)); err != nil {
		t.Fatal(err)
	}
	run, err := flow.Start(ctx, q, "release", nil, "", queue.Task{})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(q, worker.Config{})
	flow.Register(w)
	for range 2 { // the run, and its part
		if ran, err := w.RunOne(ctx); err != nil || ran == nil {
			t.Fatal(ran, err)
		}
	}
	code, out, errs := curfew(t, "explain", "--redis", url, run.ID)
	if want := regexp.MustCompile(`^` + run.ID + ` \(flow\.release\) is WAITING: .* The run waits for node approval \(check/approval\), which is out of time in (30m|29m\d+(\.\d+)?s); then its part continues without it\.\n$`); code != 0 || errs != "" || !want.MatchString(out) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if _, err := q.Cancel(ctx, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := curfew(t, "explain", "--redis", url, run.ID); code != 0 || errs != "" || strings.Contains(out, "The run") {
		t.Errorf("of an ended run: exit %d, %q, %q", code, out, errs)
	}
}
