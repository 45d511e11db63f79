package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
)

// namespace opens a namespace that records all events, with some tasks, in a database of its own. In three tests of four that is one of a
// real Redis, and in a long run of the embedded server, which interprets Lua some ten times as slowly.
func namespace(t *testing.T, tasks int) (q *queue.Queue, url string) {
	t.Helper()
	var rdb redis.UniversalClient
	if size.Drawn(t.Name(), 4) {
		rdb = redistest.Embedded(t).Client()
	} else {
		rdb, _ = database(t)
	}
	q, err := queue.Open(context.Background(), rdb, queue.Config{Partitions: 2, Events: "all", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range tasks {
		add(t, q)
	}
	return q, urlOf(rdb)
}

func add(t *testing.T, q *queue.Queue) string {
	t.Helper()
	r, err := q.Enqueue(context.Background(), queue.Task{Kind: "k", Payload: []byte("<p>")})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// jsonLines decodes the lines of an output, each of which is an object.
func jsonLines(t *testing.T, out string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := errors.Join(json.Unmarshal([]byte(line), &o), vocabulary.CheckJSON(o)); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, o)
	}
	return lines
}

func TestEventsArePrintedAndReadingContinuesFromACursor(t *testing.T) {
	q, url := namespace(t, 5)
	code, out, errs := curfew(t, "events", "--redis", url, "-o", "json", "-n", "2")
	lines := jsonLines(t, out)
	if code != 0 || errs != "" || len(lines) != 3 || lines[0]["kind"] != "task_enqueued" || lines[2]["kind"] != "cursor" {
		t.Fatalf("exit %d, %s%s, want two events and a cursor", code, out, errs)
	}
	cursor := lines[2]["cursor"].(string)
	_, out, _ = curfew(t, "events", "--redis", url, "-o", "json", "--from", cursor)
	rest := jsonLines(t, out)
	seen := map[any]bool{}
	for _, line := range append(lines, rest...) {
		seen[line["task_id"]] = true
	}
	if len(seen) != 6 || rest[len(rest)-1]["kind"] != "cursor" { // 5 ids, and nil of the cursors
		t.Errorf("from %s: %s, want the other three", cursor, out)
	}
	code, out, errs = curfew(t, "events", "--redis", url, "--from", "now")
	if code != 0 || errs != "" || !strings.HasPrefix(out, "continue with: --from ") || strings.Count(out, "\n") != 1 {
		t.Errorf("from now on: exit %d, %q, %q, want only the cursor", code, out, errs)
	}
	_, out, _ = curfew(t, "events", "--redis", url)
	if strings.Count(out, "task_enqueued") != 5 || strings.Count(out, "\n") != 6 {
		t.Errorf("text:\n%s\nwant five events and the cursor", out)
	}
	if err := q.Client().XTrimMaxLen(context.Background(), q.EventsKey(0), 0).Err(); err != nil {
		t.Fatal(err)
	}
	add(t, q)
	add(t, q)
	if _, out, _ = curfew(t, "events", "--redis", url, "--from", cursor); !strings.Contains(out, "events of partition 0 were trimmed before") {
		t.Errorf("after trimming: %s", out)
	}
	if _, out, _ = curfew(t, "events", "--redis", url, "-o", "json", "--from", cursor); jsonLines(t, out)[0]["kind"] != "events_missed" {
		t.Errorf("after trimming: %s", out)
	}
}

func TestFollowPrintsNewEventsUntilItIsInterrupted(t *testing.T) {
	q, url := namespace(t, 1)
	ctx, interrupt := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"curfew", "events", "--redis", url, "--follow", "-o", "json"}, w, io.Discard)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func() map[string]any {
		if !lines.Scan() {
			t.Fatal("the output ended")
		}
		return jsonLines(t, lines.Text())[0]
	}
	if first, cursor := next(), next(); first["kind"] != "task_enqueued" || cursor["kind"] != "cursor" {
		t.Errorf("first %v, %v", first, cursor)
	}
	id := add(t, q)
	if second, cursor := next(), next(); second["task_id"] != id || cursor["kind"] != "cursor" {
		t.Errorf("then %v, %v, want the task %s", second, cursor, id)
	}
	interrupt()
	if lines.Scan() {
		t.Errorf("got %s, want no more lines: the cursor is already printed", lines.Text())
	}
	if code := await.Receive(t, ended, "follow ends after the interrupt"); code != 0 {
		t.Errorf("exit %d after an interrupt, want 0", code)
	}
}

func TestExportWritesEveryLine(t *testing.T) {
	_, url := namespace(t, 50)
	code, out, errs := curfew(t, "export", "--redis", url)
	lines := jsonLines(t, out)
	end := lines[len(lines)-1]
	if code != 0 || errs != "" || lines[0]["type"] != "namespace" || end["type"] != "end" || end["count"] != float64(len(lines)-1) ||
		strings.Count(out, `"type":"task"`) != 50 || strings.Count(out, `"payload":"<p>"`) != 50 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	path := filepath.Join(t.TempDir(), "state.jsonl")
	code, out, errs = curfew(t, "export", "--redis", url, "-o", path)
	written, err := os.ReadFile(path)
	if code != 0 || out+errs != "" || err != nil || len(jsonLines(t, string(written))) != len(lines) {
		t.Errorf("exit %d, %q, %q, %v: %d bytes", code, out, errs, err, len(written))
	}
	if about, err := os.Stat(path); err != nil || about.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("the file's mode is %v, %v, want 0600", about.Mode(), err)
	}
}

// A reading command that fails says why and what to do, and changes nothing.
func TestReadingCommandsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	q, url := namespace(t, 1)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"events now", app.ExitUsage, `takes no argument, and got "now"`},
		{"events -o xml", app.ExitUsage, "text, json or jsonl"},
		{"events -n -1", app.ExitUsage, "must not be negative"},
		{"events --from yesterday", app.ExitUsage, `cursor "yesterday" is not valid`},
		{"events --from 0-0@0", app.ExitUsage, "cursor is for 1 partitions, and this namespace has 2"},
		{"events --namespace curfw", app.ExitNotFound, `there is no namespace "curfw" on this Redis (did you mean curfew?): give the namespace with --namespace`},
		{"events --namespace {}", app.ExitUsage, `namespace "{}" must be`},
		{"events --redis http://x", app.ExitUsage, "must begin with redis://"},
		{"export now", app.ExitUsage, `takes no argument, and got "now"`},
		{"export --namespace curfw", app.ExitNotFound, `there is no namespace "curfw"`},
		{"export --namespace=", app.ExitUsage, "must not be empty"},
		{"export -o /no/such/folder/file", app.ExitUsage, "no such file"},
		{"export -o /dev/full", app.ExitFailed, "no space left on device: the output is not complete"},
		{"export --redis redis://:secret@" + nobody, app.ExitUnreachable, "give the server's address with --redis or REDIS_URL"},
	} {
		args := strings.Fields(test.args)
		if !strings.Contains(test.args, "--redis") {
			args = append(args, "--redis", url)
			if strings.HasSuffix(args[1], "now") {
				args = strings.Fields(test.args)
			}
		}
		code, out, errs := curfew(t, args...)
		if code != test.code || !strings.Contains(errs, test.want) || out != "" || strings.Contains(errs, "secret") {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit %d and %q", test.args, code, errs, out, test.code, test.want)
		}
	}
	if n, err := q.Client().Exists(context.Background(), "curfw:{0}").Result(); n != 0 || err != nil {
		t.Errorf("reading created the namespace curfw: %d, %v", n, err)
	}
}

// After `| head -1` has read its line, nothing reads the output. That is not an error.
func TestAClosedOutputEndsTheCommandWithoutAnError(t *testing.T) {
	_, url := namespace(t, 100) // more than is buffered
	for _, args := range []string{"events", "events -o json", "export"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs bytes.Buffer
		code := run(context.Background(), append([]string{"curfew"}, append(strings.Fields(args), "--redis", url)...), w, &errs)
		w.Close()
		if code != 0 || errs.Len() > 0 {
			t.Errorf("curfew %s into a closed pipe: exit %d, %s", args, code, &errs)
		}
	}
	for _, err := range []error{syscall.EPIPE, fmt.Errorf("write: %w", syscall.EPIPE), io.ErrClosedPipe} {
		if app.Quietly(err) != nil {
			t.Errorf("quietly(%v) is not nil", err)
		}
	}
	if app.Quietly(redis.Nil) == nil {
		t.Error("quietly(redis.Nil) is nil")
	}
}
