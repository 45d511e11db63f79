package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// command runs the command with an input, on the server of a URL.
func command(t *testing.T, url, input string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runWith(t.Context(), append([]string{"curfew", args[0], "--redis", url}, args[1:]...), strings.NewReader(input), &out, &errs)
	return code, out.String(), errs.String()
}

// succeeds runs a command that must succeed, and returns its output.
func succeeds(t *testing.T, url string, args ...string) string {
	t.Helper()
	code, out, errs := command(t, url, "", args...)
	if code != 0 {
		t.Fatalf("curfew %q: exit %d, %s%s", args, code, out, errs)
	}
	return out
}

func get(t *testing.T, q *queue.Queue, id string) *queue.Record {
	t.Helper()
	r, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEnqueueStoresWhatTheFlagsSay(t *testing.T) {
	q, url := namespace(t, 0)
	out := succeeds(t, url, "enqueue", "render", `{"page": 1}`, "--queue", "mail", "--timeout", "1d", "--delay", "1h", "--attempt-timeout", "5s", "--queue-timeout", "2h",
		"--retries", "3", "--backoff", "exponential", "--backoff-delay", "1s", "--backoff-max", "1m", "--jitter", "20", "--priority", "2", "--header", "a=1,2", "--header", "b=x=y",
		"--retention", "1h", "--idempotency-key", "key")
	r := get(t, q, strings.TrimSpace(out))
	for name, want := range map[string]string{"kind": "render", "queue": "mail", "attempt_timeout_ms": "5000", "queue_timeout_ms": "7200000", "max_retries": "3", "backoff": "exponential",
		"backoff_ms": "1000", "backoff_max_ms": "60000", "jitter": "20", "priority": "2", "headers": `{"a":"1,2","b":"x=y"}`, "retention_ms": "3600000", "idempotency_key": "key"} {
		if r.Fields[name] != want {
			t.Errorf("%s is %q, want %q", name, r.Fields[name], want)
		}
	}
	if string(r.Payload) != `{"page": 1}` || r.Deadline.Sub(r.CreatedAt) != 24*time.Hour || r.AvailableAt.Sub(r.CreatedAt) != time.Hour {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(file, []byte("[1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		input   string
		args    []string
		payload string
	}{
		{"", []string{"k", "@" + file}, "[1]"},
		{"", []string{"k", "@" + file, "--raw"}, "[1]\n"},
		{"{}\n", []string{"k", "-"}, "{}"},
		{"\xff\x00", []string{"--raw", "k", "-"}, "\xff\x00"},
		{"", []string{"k", "--", "-1"}, "-1"},
		{"", []string{"k"}, ""},
	} {
		code, out, errs := command(t, url, row.input, append([]string{"enqueue", "--timeout", "1m"}, row.args...)...)
		if code != 0 || string(get(t, q, strings.TrimSpace(out)).Payload) != row.payload {
			t.Errorf("enqueue %q: exit %d, %s%s", row.args, code, out, errs)
		}
	}
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	out = succeeds(t, url, "enqueue", "k", "--deadline", at.Format(time.RFC3339), "--at", fmt.Sprint(at.Add(-time.Minute).UnixMilli()), "--id", "1-ORDER", "-o", "json")
	if line := jsonLines(t, out)[0]; line["id"] != "1-ORDER" || line["deadline_at"] != float64(at.UnixMilli()) || line["new"] != true {
		t.Errorf("%s", out)
	}
	if line := jsonLines(t, succeeds(t, url, "enqueue", "k", "--id", "1-ORDER", "-o", "jsonl"))[0]; line["new"] != false {
		t.Errorf("a repeat: %v", line)
	}
	if code, _, errs := command(t, url, "", "enqueue", "other", "--id", "1-ORDER"); code != app.ExitRefused || !strings.Contains(errs, "has another kind") {
		t.Errorf("another task with the id: exit %d, %s", code, errs)
	}
	if code, _, errs := command(t, url, "", "enqueue", "k", "--deadline", "2020-01-01T00:00:00Z"); code != app.ExitUsage || !strings.Contains(errs, "in the past") {
		t.Errorf("a deadline in the past: exit %d, %s", code, errs)
	}
}

func TestEnqueueAndWaitPrintsTheResult(t *testing.T) {
	q, url := namespace(t, 0)
	w := worker.New(q, worker.Config{})
	worker.Handle(w, "double", func(_ context.Context, n int) (int, error) { return 101 * n, nil })
	worker.Handle(w, "fail", func(context.Context, any) (any, error) { return nil, worker.Discard(errors.New("no \x1bpaper")) })
	runWorker(t, w)
	for _, row := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"double", "12"}, 0, "1212\n", "enqueued "},
		{[]string{"fail", "1", "-o", "json"}, app.ExitFailed, `"status":"FAILED"`, "failed: no �paper"},
		{[]string{"nobody", "--timeout", "50ms"}, app.ExitTimedOut, "", "Task timed out"},
	} {
		code, out, errs := command(t, url, "", append([]string{"enqueue", "--wait"}, row.args...)...)
		if code != row.code || !strings.Contains(out, row.out) || row.out == "" && out != "" || !strings.Contains(errs, row.errs) || strings.Contains(errs, "\x1b") {
			t.Errorf("%q: exit %d, %q, %q; want %d, %q, %q", row.args, code, out, errs, row.code, row.out, row.errs)
		}
	}
}

func runWorker(t *testing.T, w *worker.Worker) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestABatchIsEnqueuedWholeOrNotAtAll(t *testing.T) {
	q, url := namespace(t, 0)
	var lines strings.Builder
	for i := range 4500 {
		fmt.Fprintf(&lines, "{\"kind\":\"k\",\"payload\":{\"n\":%d},\"id\":\"%d-N%d\",\"timeout\":\"1h\"}\n\n", i, i%2, i)
	}
	code, out, errs := command(t, url, lines.String(), "enqueue", "--batch", "-")
	ids := strings.Fields(out)
	if code != 0 || errs != "" || len(ids) != 4500 || ids[0] != "0-N0" || ids[4499] != "1-N4499" || string(get(t, q, "1-N4321").Payload) != `{"n":4321}` {
		t.Fatalf("exit %d, %d ids, %.200s", code, len(ids), errs)
	}
	file := filepath.Join(t.TempDir(), "b.jsonl")
	bad := `{"kind":"k","id":"0-GOOD1"}` + "\n" + `{"kind":"k","timeout":"30"}` + "\n" + `{"kind":"k",}` + "\n" + `{"kind":"k","id":"0-GOOD2"}`
	if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = command(t, url, "", "enqueue", "--batch", file)
	want := "line 2: byte 23: timeout \"30\" has no unit: write 30s, or give timeout_ms in ms\n" +
		"line 3: byte 13: JSON is not valid: invalid character '}' looking for beginning of object key string\n" +
		"curfew: nothing was enqueued: 2 of 4 lines are bad; correct the file, or enqueue the others with --skip-bad\n"
	if _, err := q.Get(t.Context(), "0-GOOD1"); code != app.ExitUsage || out != "" || errs != want || err == nil {
		t.Errorf("exit %d, %q, %v\n%s, want\n%s", code, out, err, errs, want)
	}
	code, out, errs = command(t, url, "", "enqueue", "--batch", file, "--skip-bad", "-o", "jsonl")
	if told := jsonLines(t, out); code != app.ExitFailed || len(told) != 2 || told[1]["id"] != "0-GOOD2" || !strings.Contains(errs, "line 3: ") || !strings.Contains(errs, "2 bad lines were skipped, and the others are enqueued") {
		t.Errorf("--skip-bad: exit %d, %s, %s", code, out, errs)
	}
	// An error names the line of a task that only Redis refuses, and the others are stored.
	code, out, errs = command(t, url, `{"kind":"k","deadline_at":5000000}`+"\n"+`{"kind":"k","id":"0-GOOD3"}`, "enqueue", "--batch", "-", "-o", "json")
	if code != app.ExitFailed || !strings.Contains(errs, "line 1: deadline_at is in the past") || !strings.Contains(out, `[{"id":"0-GOOD3","new":true}]`) {
		t.Errorf("exit %d, %s, %s", code, out, errs)
	}
}

func TestGetPrintsATaskWhole(t *testing.T) {
	q, url := namespace(t, 0)
	id := queuetest.Enqueue(t, q, queue.Task{Kind: "render", Payload: []byte(`{"page":{"a":1}}`), Headers: map[string]string{"tenant": "ac\x1bme"}, Timeout: time.Hour}).ID
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	claim := w.Take(t, id, "default")
	w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Fail, Class: queue.ClassFailed, Error: "secret \x1b[2J" + strings.Repeat("x", 9000)})
	out := succeeds(t, url, "get", id)
	for _, want := range []string{id + "  render  in queue default  FAILED\n", "payload (16 bytes)\n  {\n    \"page\": {\n      \"a\": 1\n", `tenant: "ac\x1bme"`, "error (9,011 bytes)\n  secret �[2J", "--full prints all",
		"deadline_at          20"} {
		if !strings.Contains(out, want) {
			t.Errorf("get prints\n%s, want %q", out, want)
		}
	}
	if strings.Contains(out, "\x1b") || len(out) > 8000 {
		t.Errorf("%d bytes, escapes %t", len(out), strings.Contains(out, "\x1b"))
	}
	if out := succeeds(t, url, "get", id, "--full"); !strings.Contains(out, strings.Repeat("x", 9000)) {
		t.Errorf("--full prints %d bytes", len(out))
	}
	line := jsonLines(t, succeeds(t, url, "get", "-o", "json", id))[0]
	if line["id"] != id || line["payload"] != `{"page":{"a":1}}` || line["status"] != "FAILED" || line["why"] != "failed" || line["epoch"] != 1.0 {
		t.Errorf("%v", line)
	}
	for _, args := range [][]string{{}, {"-o", "json"}, {"--full"}} {
		if out := succeeds(t, url, append([]string{"get", id, "--hide-payloads"}, args...)...); strings.Contains(out, "page") || strings.Contains(out, "secret") || strings.Contains(out, "tenant") || !strings.Contains(out, "payload_bytes") {
			t.Errorf("--hide-payloads prints %s", out)
		}
	}
}

// An agent's text has what it waits for, its children and what it remembers.
func TestGetPrintsAnAgent(t *testing.T) {
	q, url := namespace(t, 0)
	w := worker.New(q, worker.Config{})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ struct{}) (string, error) {
		if _, err := agentwait.Step(a, "price", func(context.Context) (int, error) { return 4711, nil }); err != nil {
			return "", err
		}
		approved, err := agentwait.Await(a, agentwait.Signal[string](a, "approved"))
		if err == nil {
			_, err = agentwait.Await(a, agentwait.Signal[string](a, "end"))
		}
		return approved, err
	})
	runWorker(t, w)
	id := queuetest.Enqueue(t, q, queue.Task{Kind: "agent", Timeout: time.Hour}).ID
	await.Until(t, "the agent waits", func() bool { return get(t, q, id).Status == queue.Waiting })
	out := succeeds(t, url, "get", id)
	for _, want := range []string{"agent  in queue default  WAITING", "\nwaits for (", id + ".s-approved", "\nchildren (1 made)\n", "\nremembers (", "4711"} {
		if !strings.Contains(out, want) {
			t.Errorf("get prints\n%s, want %q", out, want)
		}
	}
	line := jsonLines(t, succeeds(t, url, "get", id, "-o", "json"))[0]
	if children := line["child_tasks"].([]any); len(children) != 1 || len(line["memory"].(map[string]any)["entries"].([]any)) == 0 || line["wait"] == nil {
		t.Errorf("%v", line)
	}
	if out := succeeds(t, url, "get", id, "--hide-payloads"); strings.Contains(out, "4711") {
		t.Errorf("--hide-payloads prints %s", out)
	}

	// A signal counts once, and its repeat is no error.
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{id, "approved", `"yes"`}, 0, "sent"},
		{[]string{id, "approved", `"yes"`}, 0, "before, in the same way"},
		{[]string{id, "approved", `"no"`}, app.ExitRefused, "already, with other content"},
		{[]string{"0-NOBODY", "approved", `"no"`}, app.ExitNotFound, "no such task"},
		{[]string{id, "approved", `{`}, app.ExitUsage, "the payload is not JSON: byte 1"},
		{[]string{id + ".s-approved", "approved"}, app.ExitRefused, "owner has ended"},
		{[]string{"--call", "", id, "approved"}, app.ExitUsage, "--call \"\" must be one word"},
		{[]string{"--call", "C1", id, "approved", `"no"`}, app.ExitRefused, "already, with other content"},
		{[]string{id, "two words"}, app.ExitUsage, "signal \"two words\" must be"},
	} {
		code, out, errs := command(t, url, "", append([]string{"signal"}, row.args...)...)
		if code != row.code || !strings.Contains(out+errs, row.want) {
			t.Errorf("signal %q: exit %d, %s%s, want %d, %q", row.args, code, out, errs, row.code, row.want)
		}
	}
	succeeds(t, url, "signal", id, "end", `""`)
	if code, out, errs := command(t, url, "", "wait", id, "-o", "json"); code != 0 || !strings.Contains(out, `"result":"\"yes\""`) {
		t.Errorf("wait: exit %d, %s%s", code, out, errs)
	}
}

func TestWaitEndsByItsMode(t *testing.T) {
	q, url := namespace(t, 0)
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	end := func(o queue.Outcome, task queue.Task) string {
		task.Queue = fmt.Sprint("q", w.Seq)
		r := queuetest.Enqueue(t, q, task)
		if o.Verb != "" {
			claim := w.Take(t, r.ID, task.Queue)
			o.ID, o.Epoch = r.ID, claim.Epoch
			w.Settle(t, o)
		}
		return r.ID
	}
	done := end(queue.Outcome{Verb: queue.Complete, Result: []byte("42")}, queue.Task{})
	failed := end(queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed, Error: "boom"}, queue.Task{})
	open := end(queue.Outcome{}, queue.Task{})
	late := end(queue.Outcome{}, queue.Task{Timeout: time.Millisecond})
	for _, row := range []struct {
		args string
		code int
		out  string
		errs string
	}{
		{done, 0, done + "  COMPLETED  42\n", ""},
		{done + " " + done + " -o jsonl", 0, `"result":"42"`, ""},
		{failed, app.ExitFailed, "FAILED", "boom"},
		{late, app.ExitTimedOut, "Task exceeded deadline", "Task timed out"},
		{done + " " + late + " " + failed, app.ExitFailed, "boom", "failed: boom"},
		{done + " " + failed + " --mode settled", 0, "boom", ""},
		{open + " " + done + " --mode any", 0, "42", ""},
		{open + " " + done + " --mode 1 -o id", 0, done + "\n", ""},
		{failed + " " + open + " --mode 2", app.ExitFailed, "boom", "boom"},
		{"0-NOBODY", app.ExitNotFound, "", "no such task: the id is wrong"},
		{"0-NOBODY " + done, app.ExitNotFound, "42", "no such task"},
	} {
		code, out, errs := command(t, url, "", append([]string{"wait"}, strings.Fields(row.args)...)...)
		if code != row.code || !strings.Contains(out, row.out) || !strings.Contains(errs, row.errs) || row.errs == "" && errs != "" {
			t.Errorf("wait %s: exit %d, %q, %q; want %d, %q, %q", row.args, code, out, errs, row.code, row.out, row.errs)
		}
	}
	inTime(t, func(slower time.Duration) error {
		code, out, errs := command(t, url, "", "wait", open, done, "--timeout", (slower * 100 * time.Millisecond).String())
		if code != app.ExitTimedOut || !strings.Contains(out, "42") || !strings.Contains(errs, "--timeout has passed, and 1 task has not ended") {
			return lateIf(code == app.ExitTimedOut && out == "", fmt.Errorf("exit %d, %q, %q; want that one task has ended", code, out, errs))
		}
		return nil
	})
}

// The output has a line for each id, and the exit code is that of the worst.
func TestTasksAreCancelledRetriedResolvedAndRemoved(t *testing.T) {
	q, url := namespace(t, 0)
	a, b := add(t, q), add(t, q)
	promise, other := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID, queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	typed := queuetest.Enqueue(t, q, queue.Task{Promise: true, ResultType: "bool"}).ID
	for _, row := range []struct {
		args string
		code int
		want []string
	}{
		{"rm " + a, app.ExitRefused, []string{"has not ended"}},
		{"retry " + a, app.ExitRefused, []string{"only a task that has ended can be run again"}},
		{"resolve " + a + " 1", app.ExitRefused, []string{"promise"}},
		{"cancel " + a + " 0-NOBODY --reason why", app.ExitNotFound, []string{a + "  CANCELLED  cancelled\n", "0-NOBODY              -          no such", "no such task", "1 of 2 tasks were not cancelled"}},
		{"cancel " + a + " " + b + " -o json", 0, []string{`"changed":false,"text":"was cancelled before"`, `"changed":true`}},
		{"retry " + a + " -o jsonl", 0, []string{`"retry_of":"` + a + `"`}},
		{"retry " + a + " --call C1 -o jsonl", 0, []string{`"status":"PENDING","changed":true,"retry_of":"` + a + `"`}},
		{"retry " + a + " --call C1 -o jsonl", 0, []string{`"changed":false,"retry_of":"` + a + `"`, "this call has made it before"}},
		{"retry " + a + " --call =", app.ExitUsage, []string{`--call "=" must be one word`}},
		{"signal " + promise + " go 1", app.ExitRefused, []string{"agent is a promise: a signal is for an agent, which waits for it by name; resolve ends a promise"}},
		{"resolve " + promise + ` {"ok":true}`, 0, []string{"COMPLETED  resolved"}},
		{"resolve " + promise + ` {"ok":true}`, 0, []string{"was resolved before, in the same way"}},
		{"resolve " + promise + ` {"ok":false}`, app.ExitRefused, []string{"it is COMPLETED already"}},
		{"resolve " + typed + ` "yes"`, app.ExitRefused, []string{"result must be JSON of type bool, true or false: it is a string"}},
		{"resolve " + typed + " yes --raw", app.ExitRefused, []string{"it is not JSON, see byte 1"}},
		{"resolve " + typed, app.ExitRefused, []string{"it is empty"}},
		{"explain " + typed, 0, []string{"is a promise that has not been settled: its result must be of type bool"}},
		{"get " + typed, 0, []string{"result_type          bool\n"}},
		{"resolve " + typed + " true", 0, []string{"COMPLETED  resolved"}},
		{"resolve " + other + " --error no", 0, []string{"FAILED"}},
		{"resolve " + other, app.ExitRefused, []string{"it is FAILED already: no"}},
		{"cancel " + promise + " " + a, app.ExitRefused, []string{"it is COMPLETED already"}},
		{"rm " + a + " 0-NOBODY", app.ExitNotFound, []string{"will be removed at 2", "no such task"}},
		{"cancel 7-NOBODY", app.ExitUsage, []string{"this namespace has 2 partitions"}},
	} {
		code, out, errs := command(t, url, "", strings.Fields(row.args)...)
		for _, want := range row.want {
			if code != row.code || !strings.Contains(out+errs, want) || strings.Count(errs, "curfew: ") > 1 {
				t.Errorf("%s: exit %d, %s%s, want %d, %q", row.args, code, out, errs, row.code, want)
			}
		}
	}
	if r := get(t, q, a); r.Error != "why" {
		t.Errorf("the reason is %q", r.Error)
	}
}

func TestTasksAreListed(t *testing.T) {
	q, url := namespace(t, 0)
	for i := range 30 {
		queuetest.Enqueue(t, q, queue.Task{Kind: []string{"a", "b", "c"}[i%3], Queue: []string{"x", "y"}[i%2], Payload: []byte("secret")})
	}
	code, out, errs := command(t, url, "", "ls", "--kind", "a", "--queue", "x")
	if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 7 || !strings.HasPrefix(lines[0], "id ") || !strings.Contains(errs, "5 tasks; looked at all ") || !strings.Contains(errs, "not listed: promises") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	seen, args := map[string]bool{}, []string{"ls", "--limit", "7", "-o", "id", "--status", "pending"}
	for range 5 {
		code, out, errs := command(t, url, "", args...)
		for _, id := range strings.Fields(out) {
			seen[id] = true
		}
		_, cursor, more := strings.Cut(strings.TrimSpace(strings.Split(errs, "\n")[0]), "--cursor ")
		if code != 0 || !more {
			break
		}
		args = append(args[:7], "--cursor", cursor)
	}
	if len(seen) != 30 {
		t.Errorf("the pages have %d tasks, want 30", len(seen))
	}
	if lines := jsonLines(t, succeeds(t, url, "ls", "-o", "jsonl", "--limit", "3")); len(lines) != 3 || lines[0]["status"] != "PENDING" {
		t.Errorf("%v", lines)
	}
	if out := succeeds(t, url, "ls", "--status", "FAILED"); out != "" {
		t.Errorf("%s", out)
	}
	for _, row := range []struct{ args, want string }{
		{"--status DONE", `--status "DONE" must be PENDING, RUNNING`},
		{"--status FAILD", "(did you mean FAILED?)"},
		{"--since soon", `--since "soon" must be an instant`},
		{"--cursor x", "is not what ls has printed for these filters"},
		{"--agent x", "is not a task's id"},
		{"--queue=", "--queue must not be empty"},
		{"--limit 0", "--limit 0 must be from 1"},
		{"mail", `got "mail"`},
	} {
		if code, out, errs := command(t, url, "", append([]string{"ls"}, strings.Fields(row.args)...)...); code != app.ExitUsage || out != "" || !strings.Contains(errs, row.want) {
			t.Errorf("ls %s: exit %d, %s%s, want %q", row.args, code, out, errs, row.want)
		}
	}
}

// Commands on many tasks count first, and ask for the number of more than 1,000.
func TestMatchingTasksAreChanged(t *testing.T) {
	q, url := namespace(t, 0)
	var tasks []queue.Task
	for i := range 1500 {
		tasks = append(tasks, queue.Task{Kind: []string{"a", "b"}[i%2], Queue: []string{"x", "y", "y"}[i%3]})
	}
	if _, err := q.EnqueueAll(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args, input string
		code        int
		want        string
	}{
		{"cancel --all-matching --queue x --dry-run", "", 0, "500 tasks would be cancelled\n"},
		{"cancel --all-matching --queue x --dry-run -o json", "", 0, `{"count":500}`},
		{"cancel --all-matching", "", app.ExitFailed, "no task was cancelled: type the number of tasks, or give --yes"},
		{"cancel --all-matching", "y\n", app.ExitFailed, "no task was cancelled: y is not the number of tasks, 1,500"},
		{"cancel --all-matching --queue x -o id", "", 0, "500 of 500 tasks were cancelled"},
		{"cancel --all-matching --dry-run", "", 0, "1,000 tasks would be cancelled"},
		{"retry --all-matching --queue x --status CANCELLED -o id", "", 0, "500 of 500 tasks were retried"},
		{"cancel --all-matching -o id", "1,500\n", 0, "1,500 of 1,500 tasks were cancelled"},
		{"rm --all-matching --yes -o id", "", 0, "2,000 of 2,000 tasks were removed"},
		{"cancel --all-matching --yes", "", 0, "0 of 0 tasks were cancelled"},
		{"cancel --all-matching --status FAILED", "", app.ExitUsage, "a task that is FAILED cannot be cancelled"},
		{"rm --all-matching --status PENDING", "", app.ExitUsage, "a task that is PENDING cannot be removed"},
		{"cancel --all-matching 0-A", "", app.ExitUsage, "leave out 0-A"},
		{"cancel 0-A --queue x", "", app.ExitUsage, "--queue needs --all-matching"},
		{"cancel 0-A --yes", "", app.ExitUsage, "--yes needs --all-matching"},
		{"rm --all-matching --yes --dry-run", "", app.ExitUsage, "leave one of them out"},
	} {
		code, out, errs := command(t, url, row.input, strings.Fields(row.args)...)
		if code != row.code || !strings.Contains(out+errs, row.want) {
			t.Errorf("%s: exit %d, %.200s%s; want %d, %q", row.args, code, out, errs, row.code, row.want)
		}
	}
}

// The hooks of tasks that a command cancels match its filters, and stay.
func TestHooksOfCancelledTasksAreNotCancelled(t *testing.T) {
	q, url := namespace(t, 0)
	hook := queue.Hooks{OnCancel: queue.Hook{Kind: "cleanup", Queue: "x"}}
	// Delayed tasks are listed after those in line, so the hooks of these come before them.
	tasks := slices.Repeat([]queue.Task{{Kind: "a", Queue: "x", Hooks: hook}, {Kind: "a", Queue: "x", Hooks: hook, Delay: time.Hour}}, 600)
	if _, err := q.EnqueueAll(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	code, _, errs := command(t, url, "", "cancel", "--all-matching", "--queue", "x", "--yes", "-o", "id")
	if code != 0 || !strings.Contains(errs, "1,200 of 1,200 tasks were cancelled") {
		t.Errorf("exit %d, %s", code, errs)
	}
	stats, err := q.Stats(t.Context())
	if err != nil || stats.Queues[0].Ready != 1200 || stats.Queues[0].Cancelled != 1200 {
		t.Errorf("%v, %+v, want 1200 hooks in line and 1200 cancelled tasks", err, stats.Queues)
	}
}

// Tasks that arrive after the count are left alone: nobody has confirmed them.
func TestNoMoreTasksAreChangedThanWereCounted(t *testing.T) {
	q, url := namespace(t, 0)
	if _, err := q.EnqueueAll(t.Context(), slices.Repeat(make1000(t), 2)[:1950]); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := runWith(t.Context(), []string{"curfew", "cancel", "--all-matching", "-o", "id", "--redis", url}, &late{arrive: func() {
		if _, err := q.EnqueueAll(t.Context(), make1000(t)); err != nil {
			t.Error(err)
		}
	}, Reader: strings.NewReader("1950\n")}, &out, &errs)
	if code != 0 || strings.Count(out.String(), "\n") != 1950 || !strings.Contains(errs.String(), "1,950 of 1,950 tasks were cancelled") {
		t.Errorf("exit %d, %d tasks, %s", code, strings.Count(out.String(), "\n"), &errs)
	}
	if out := succeeds(t, url, "cancel", "--all-matching", "--dry-run"); !strings.HasPrefix(out, "1,000 tasks") {
		t.Errorf("left are %s", out)
	}
}

// late is an input that calls arrive before it is first read.
type late struct {
	io.Reader
	arrive func()
	once   sync.Once
}

func (l *late) Read(p []byte) (int, error) { l.once.Do(l.arrive); return l.Reader.Read(p) }

// A command on many tasks that is interrupted says how many were done.
func TestAnInterruptTellsHowManyWereDone(t *testing.T) {
	q, url := namespace(t, 0)
	if _, err := q.EnqueueAll(t.Context(), make1000(t)); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := writer(func(p []byte) { interrupt() })
	var errs bytes.Buffer
	code := run(ctx, []string{"curfew", "cancel", "--all-matching", "-o", "id", "--redis", url}, out, &errs)
	if code != app.ExitInterrupted || !strings.Contains(errs.String(), "curfew: interrupted: ") || !strings.Contains(errs.String(), " of 1,000 tasks were cancelled; run it again for the others") {
		t.Errorf("exit %d, %s", code, &errs)
	}
	if out := succeeds(t, url, "cancel", "--all-matching", "--dry-run"); !strings.HasPrefix(out, "500 ") {
		t.Errorf("after the interrupt: %s", out)
	}
}

func make1000(t *testing.T) []queue.Task {
	t.Helper()
	tasks := make([]queue.Task, 1000)
	for i := range tasks {
		tasks[i].Kind = "k"
	}
	return tasks
}

// A batch that is interrupted says how far it came, and a wait that is interrupted lets the task go on.
func TestEnqueueIsInterrupted(t *testing.T) {
	_, url := namespace(t, 0)
	ctx, interrupt := context.WithCancel(t.Context())
	var errs bytes.Buffer
	in := strings.NewReader(strings.Repeat(`{"kind":"k","timeout":"1h"}`+"\n", 5000))
	code := runWith(ctx, []string{"curfew", "enqueue", "--batch", "-", "--redis", url}, in, writer(func([]byte) { interrupt() }), &errs)
	if want := "curfew: interrupted: 2,000 of 5,000 tasks are enqueued, all lines up to 2000;"; code != app.ExitInterrupted || !strings.HasPrefix(errs.String(), want) {
		t.Errorf("exit %d, %s, want %s", code, &errs, want)
	}
	if out := succeeds(t, url, "cancel", "--all-matching", "--dry-run"); !strings.HasPrefix(out, "2,000 tasks") {
		t.Errorf("there are %s", out)
	}

	ctx, interrupt = context.WithCancel(t.Context())
	pipe, _ := io.Pipe() // nobody types
	time.AfterFunc(10*time.Millisecond, interrupt)
	errs.Reset()
	if code := runWith(ctx, []string{"curfew", "enqueue", "--batch", "-", "--redis", url}, pipe, io.Discard, &errs); code != app.ExitInterrupted || errs.String() != "curfew: interrupted: nothing was enqueued\n" {
		t.Errorf("while it reads stdin: exit %d, %s", code, &errs)
	}

	for _, args := range [][]string{{"enqueue", "k", "--wait"}, {"wait", "0-A"}} {
		ctx, interrupt = context.WithCancel(t.Context())
		var said strings.Builder
		succeeds(t, url, "enqueue", "k", "--id", "0-A")
		time.AfterFunc(100*time.Millisecond, interrupt)
		if code := run(ctx, append([]string{"curfew", args[0], "--redis", url}, args[1:]...), io.Discard, &said); code != app.ExitInterrupted || !strings.Contains(said.String(), "curfew: interrupted") {
			t.Errorf("%q: exit %d, %s", args, code, &said)
		}
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// Wrong use of the commands about tasks: exit 2, nothing on stdout, and what to do on stderr.
func TestWrongUseOfTaskCommands(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"enqueue", "enqueue needs the kind of the task, and its payload: see `curfew enqueue --help`"},
		{"enqueue k {} extra", `got "extra" too`},
		{"enqueue k {", "the payload is not JSON: byte 1: JSON is not valid: unexpected end of JSON input; give --raw for other bytes"},
		{"enqueue k {\"a\":01}", "byte 7: JSON is not valid"},
		{"enqueue k @/nowhere/x", "the payload: open /nowhere/x: no such file"},
		{"enqueue two/w%rds", "kind \"two/w%rds\" must be 1 to 128 of"},
		{"enqueue k --queue a:b", "queue \"a:b\" must be"},
		{"enqueue k --timeout 5", "has no unit: write 5s"},
		{"enqueue k --timeout 0s", "--timeout must not be 0"},
		{"enqueue k --timeout 5s --deadline 2030-01-01T00:00:00Z", "deadline cannot be given together with a timeout"},
		{"enqueue k --deadline tomorrow", "--deadline \"tomorrow\" must be an instant, such as"},
		{"enqueue k --at 5", "--at \"5\" must be an instant"},
		{"enqueue k --at 2030-01-01T00:00:00Z --delay 1s", "start cannot be given together with a delay"},
		{"enqueue k --retries -1", "--retries -1 must be from 0"},
		{"enqueue k --retries many", "must be a whole number"},
		{"enqueue k --backoff linear", "--backoff \"linear\" must be constant or exponential"},
		{"enqueue k --backoff exponential", "a back-off needs --backoff-delay"},
		{"enqueue k --jitter 5", "a back-off needs --backoff-delay"},
		{"enqueue k --jitter 101", "--jitter 101 must be from 0 to 100"},
		{"enqueue k --priority 4", "--priority 4 must be from 0 to 3"},
		{"enqueue k --header a", "--header \"a\" must be NAME=VALUE"},
		{"enqueue k --header =a", "must be NAME=VALUE"},
		{"enqueue k --id mine", "\"mine\" is not a task's id"},
		{"enqueue k --id=", "--id must not be empty"},
		{"enqueue k --promise --retries 2", "is not run by a worker"},
		{"enqueue k --skip-bad", "--skip-bad needs --batch"},
		{"enqueue k --batch x", "--batch takes no argument, and got \"k\""},
		{"enqueue --batch x --timeout 5s", "--timeout is for one task"},
		{"enqueue --batch x --wait", "--wait is for one task"},
		{"enqueue --batch /nowhere/x", "--batch: open /nowhere/x"},
		{"enqueue --batch /dev/null", "--batch: there is no task in /dev/null"},
		{"enqueue k --timout 5s", "there is no flag --timout (did you mean --timeout?)"},
		{"enqueue k -o xml", "--output \"xml\" must be id, json or jsonl"},
		{"get", "get needs the id of one task"},
		{"get 0-A 0-B", `got "0-B" too`},
		{"get 0-A -o yaml", `must be text, json or jsonl`},
		{"wait", "wait needs the ids of one or more tasks"},
		{"wait 0-A --mode al", "must be all, any, settled, or a number (did you mean all?)"},
		{"wait 0-A --mode 2", "--mode 2 must be from 1 to the number of tasks, 1"},
		{"wait 0-A --mode 0", "--mode 0 must be from 1"},
		{"wait 0-A --timeout 0s", "--timeout must not be 0"},
		{"cancel", "cancel needs the ids of one or more tasks"},
		{"cancel 0-A -o xml", "must be table, wide, json, jsonl or id"},
		{"retry", "retry needs the ids"},
		{"rm", "rm needs the ids"},
		{"rm 0-A --forse", "there is no flag --forse"},
		{"resolve", "resolve needs the id of a promise"},
		{"resolve 0-A 1 --error x", "leave out --error, or the result"},
		{"resolve 0-A --error=", "--error must not be empty"},
		{"resolve 0-A {", "the result is not JSON: byte 1"},
		{"signal 0-A", "signal needs the id of an agent"},
		{"signal 0-A a__2", "must not end with __ and a number"},
		{"signal 0-A a {", "the payload is not JSON"},
		{"enqeue k", "(did you mean enqueue?)"},
	} {
		code, out, errs := curfew(t, strings.Fields(row.args)...)
		if code != app.ExitUsage || !strings.Contains(errs, row.want) || out != "" || strings.Count(errs, "curfew: ") != 1 {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", row.args, code, errs, out, row.want)
		}
	}
	for _, name := range []string{"enqueue", "get", "ls", "wait", "cancel", "retry", "rm", "resolve", "signal", "explain", "events"} {
		if code, out, errs := curfew(t, name, "--help"); code != 0 || !strings.Contains(out, "    curfew "+name+" ") || errs != "" {
			t.Errorf("curfew %s --help: exit %d, %q, %q", name, code, out, errs)
		}
	}
}

var everyTaskCommand = []string{"enqueue k", "get 0-A", "ls", "wait 0-A", "cancel 0-A", "cancel --all-matching", "retry 0-A", "retry --all-matching --dry-run", "rm 0-A", "rm --all-matching --yes", "resolve 0-A 1",
	"signal 0-A a 1", "explain 0-A -o json"}

// Each command says what is wrong with the server or the namespace, and creates nothing.
func TestTaskCommandsSayWhatIsWrongWithTheServer(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Open(t, admin, queue.Config{Namespace: "shop"})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "none", "on", ">secret", "~*", "&*", "+@connection", "+info", "+exists").Err(); err != nil {
		t.Fatal(err)
	}
	keys := count(t, admin)
	for _, args := range everyTaskCommand {
		for _, row := range []struct {
			flags string
			code  int
			want  string
		}{
			{"--namespace shopp --redis redis://" + server.Addr, app.ExitNotFound, `there is no namespace "shopp"`},
			{"--namespace shop --redis redis://none:secret@" + server.Addr, app.ExitFailed, "right"},
			{"--namespace shop --redis redis://none:wrong@" + server.Addr, app.ExitUnreachable, "password"},
			{"--redis http://x", app.ExitUsage, "must begin with redis://"},
			{"--namespace=", app.ExitUsage, "--namespace must not be empty"},
		} {
			t.Run(args+" "+row.flags, func(t *testing.T) {
				t.Parallel()
				code, out, errs := typing(t, "", args+" "+row.flags)
				if code != row.code || !strings.Contains(errs, row.want) || out != "" || strings.Contains(errs, "secret") || strings.Count(errs, "curfew: ") != 1 {
					t.Errorf("exit %d, stderr %q, stdout %q; want exit %d and %q", code, errs, out, row.code, row.want)
				}
			})
		}
	}
	t.Cleanup(func() {
		if n, err := admin.DBSize(context.Background()).Result(); err == nil && n != keys {
			t.Errorf("there are %d keys, want %d", n, keys)
		}
	})
}

// Each command tries for five seconds, so they all do so at once.
func TestTaskCommandsSayThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for _, args := range everyTaskCommand {
		group.Go(func() {
			code, out, errs := typing(t, "", args+" --redis redis://u:secret@"+nobody)
			if code != app.ExitUnreachable || !strings.Contains(errs, "give the server's address with --redis or REDIS_URL") || out != "" || strings.Contains(errs, "secret") {
				t.Errorf("curfew %s: exit %d, %s%s", args, code, out, errs)
			}
		})
	}
	group.Wait()
}

func TestTaskCommandsAreInterruptedWhileTheyConnect(t *testing.T) {
	for _, args := range everyTaskCommand {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			address := silent(t, interrupt)
			var out, errs bytes.Buffer
			code := run(ctx, append([]string{"curfew"}, strings.Fields(args+" --redis redis://"+address)...), &out, &errs)
			if code != app.ExitInterrupted || out.Len() > 0 || errs.String() != "curfew: interrupted\n" {
				t.Errorf("exit %d, %q, %q", code, &out, &errs)
			}
		})
	}
}

func TestAClosedOutputEndsATaskCommandWithoutAnError(t *testing.T) {
	q, url := namespace(t, 0)
	id := add(t, q)
	promise := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	file := filepath.Join(t.TempDir(), "b.jsonl")
	if err := os.WriteFile(file, []byte(`{"kind":"k"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"enqueue k", "enqueue k -o json", "enqueue --batch " + file, "get " + id, "get -o json " + id, "ls", "ls -o json", "cancel " + id, "retry " + id, "wait --mode settled " + id, "rm " + id, "resolve " + promise + " 1", "explain " + id} {
		r, w := io.Pipe()
		r.Close()
		var errs bytes.Buffer
		if code := run(t.Context(), append([]string{"curfew"}, strings.Fields(args+" --redis "+url)...), w, &errs); code != 0 || strings.Contains(errs.String(), "curfew:") {
			t.Errorf("curfew %s: exit %d, %s", args, code, &errs)
		}
	}
}

// jsonl means the same as json where a command prints lines of JSON.
func TestLinesOfJSONHaveTwoNames(t *testing.T) {
	q, url := namespace(t, 1)
	id := add(t, q)
	for _, args := range []string{"events", "explain " + id, "get " + id} {
		words := strings.Fields(args)
		a, b := succeeds(t, url, append(words, "-o", "json")...), succeeds(t, url, append(words, "-o", "jsonl")...)
		if len(jsonLines(t, a)) == 0 || len(jsonLines(t, a)) != len(jsonLines(t, b)) {
			t.Errorf("%s: %s, %s", args, a, b)
		}
	}
	if a, b := succeeds(t, url, "explain", id, "--json"), succeeds(t, url, "explain", id, "-o", "json"); jsonLines(t, a)[0]["sentence"] != jsonLines(t, b)[0]["sentence"] {
		t.Errorf("%s, %s", a, b)
	}
}
