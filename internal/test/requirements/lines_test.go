package requirements

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// hostile are texts that could break a line, or look like one.
var hostile = map[string]string{
	"a line":         "no\nlevel=INFO msg=\"Task timed out\" task_id=0-FAKE",
	"other breaks":   "a\r\n\v\f\u0085\u2028\u2029b",
	"quotes":         `"}{"level":"INFO","msg":"Task timed out`,
	"escapes":        "\x1b[2J\x1b]0;title\a\x00\x7f",
	"no UTF-8":       "a\xff\xfe\xc3(b",
	"64 KiB":         strings.Repeat("0123456789abcde\n", 4096),
	"an empty text":  "",
	"a key":          " task_id=1 ",
	"its own escape": `a\nb`,
}

// aPair matches a key and a value of a line of text.
var aPair = regexp.MustCompile(`(\S+?)=("(?:[^"\\]|\\.)*"|\S*)(?: |$)`)

// pairs returns the keys and values of a line. It fails if the line has anything else.
func pairs(t *testing.T, line string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if strings.HasPrefix(line, "{") {
		var values map[string]any
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatalf("%.200q is no JSON: %v", line, err)
		}
		for key, value := range values {
			all[key], _ = value.(string)
		}
		return all
	}
	if rest := aPair.ReplaceAllString(line, ""); rest != "" {
		t.Fatalf("%.200q has beside keys and values %.100q", line, rest)
	}
	for _, pair := range aPair.FindAllStringSubmatch(line, -1) {
		value := pair[2]
		if strings.HasPrefix(value, `"`) {
			var err error
			if value, err = strconv.Unquote(value); err != nil {
				t.Fatalf("%.200q: %v", value, err)
			}
		}
		if _, twice := all[pair[1]]; twice {
			t.Fatalf("%.200q has the key %s twice", line, pair[1])
		}
		all[pair[1]] = value
	}
	return all
}

func handlers(logs *buffer) map[string]slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: timeless}
	return map[string]slog.Handler{"text": slog.NewTextHandler(logs, options), "JSON": slog.NewJSONHandler(logs, options)}
}

// What a handler panics with is in the log as one line, which has the same text again. Names that could break a line are
// refused.
func TestAHostileTextIsOneLine(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "JSON"} {
		for claim, text := range hostile {
			t.Run(format+", "+claim, func(t *testing.T) {
				t.Parallel()
				logs := &buffer{}
				s := open(t, redistest.Shared(t).Client(t), queue.Config{Logger: slog.New(handlers(logs)[format])}, time.Time{})
				w := worker.New(s.q, worker.Config{})
				worker.Handle(w, "k", func(context.Context, any) (any, error) { panic(text) })
				id := s.enqueue(queue.Task{Kind: "k"})
				if _, err := w.RunOne(t.Context()); err != nil {
					t.Fatal(err)
				}
				lines := logs.lines("A handler panicked")
				if len(lines) != 1 || len(logs.lines("")) != len(logs.lines("msg")) {
					t.Fatalf("%d lines of the panic among %d", len(lines), len(logs.lines("")))
				}
				got, want := pairs(t, lines[0]), "panic: "+text
				if len(want) > 16<<10 {
					want = want[:16<<10]
				}
				if format == "JSON" {
					want = string([]rune(want)) // JSON has no other bytes than UTF-8
				}
				if got["error"] != want || got["task_id"] != id || got["queue"] != "default" || got["kind"] != "k" || got["worker"] == "" {
					t.Errorf("the line has the error %.100q, want %.100q, in %.300q", got["error"], want, lines[0])
				}
				if n := len(got["stack"]); n < 200 || n > 8<<10 {
					t.Errorf("the stack has %d bytes, want 8 KiB at most", n)
				}
				if text == "" {
					return
				}
				for what, task := range map[string]queue.Task{"queue": {Kind: "k", Queue: text}, "kind": {Kind: text}} {
					if _, err := s.q.Enqueue(t.Context(), task); !errors.Is(err, refusal.ErrInvalid) || strings.ContainsAny(err.Error(), "\n\x1b\r\x00") || len(err.Error()) > 2000 {
						t.Errorf("the name %.50q of a %s: %.300q", text, what, err)
					}
				}
			})
		}
	}
}

// deep panics with so many frames that the stack is long.
func deep(n int) {
	if n == 0 {
		panic("deep")
	}
	deep(n - 1)
}

func TestTheStackOfAPanicIsBounded(t *testing.T) {
	t.Parallel()
	logs := &buffer{}
	s := open(t, redistest.Shared(t).Client(t), queue.Config{Logger: slog.New(handlers(logs)["JSON"])}, time.Time{})
	w := worker.New(s.q, worker.Config{})
	worker.Handle(w, "k", func(context.Context, any) (any, error) { deep(90); return nil, nil })
	s.enqueue(queue.Task{Kind: "k"})
	if _, err := w.RunOne(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(pairs(t, logs.lines("A handler panicked")[0])["stack"]); n != 8<<10 {
		t.Errorf("the stack has %d bytes, want %d", n, 8<<10)
	}
}

// The reply of the call that ended a task is lost. The call is repeated, but Redis does not report the end again, and no other
// process does. So the line is in no log. Nobody logs it twice.
func TestALostReplyLosesItsLine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		call string
		cut  int
		want int
		do   func(*stage, *queue.Queue, string) error
	}{
		{"sweep", 0, 1, nil},
		{"sweep", 1, 0, nil},
		{"cancel", 0, 1, cancelLate},
		{"cancel", 1, 0, cancelLate},
	} {
		t.Run(row.call+" loses "+strconv.Itoa(row.cut), func(t *testing.T) {
			t.Parallel()
			addr, logs := redistest.Shared(t).Addr, &buffer{}
			logger := slog.New(handlers(logs)["text"])
			s := open(t, redistest.Shared(t).Client(t), queue.Config{Logger: logger}, time.Time{})
			proxy := faultproxy.Start(t, addr)
			rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr})
			t.Cleanup(func() { rdb.Close() })
			caller, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: s.q.Namespace(), Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			id := s.enqueue(queue.Task{Kind: "k", Timeout: time.Millisecond})
			await.Until(t, "its time is up", func() bool { return s.rdb.Time(t.Context()).Val().After(s.record(id).Deadline.Add(time.Millisecond)) })
			lost := proxy.CutReply(faultproxy.Script(caller.Engine().Library().Handle(row.call)), row.cut)
			if row.do == nil {
				_, err = reaper.Sweep(t.Context(), caller, 0, "r1", 100, time.Second)
			} else {
				err = row.do(s, caller, id)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.sweep() // another process
			if r := s.record(id); !r.TimedOut {
				t.Fatalf("the task is %s", r.Status)
			}
			if row.cut > 0 {
				lost.Await(t)
			}
			if n := len(logs.lines("Task timed out")); n != row.want {
				t.Errorf("%d lines, want %d", n, row.want)
			}
		})
	}
}

func cancelLate(s *stage, caller *queue.Queue, id string) error {
	_, err := caller.Cancel(s.Context(), id, "")
	return err
}

// A worker with a reaper, and an agent that waits for a task that times out, write all their lines. Each has only keys of its
// row in the reference, and each line about a task says which task, queue and kind it is.
func TestTheLinesOfARunHaveTheKeysOfTheReference(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| [A-Z]+ \\| `(.+?)`(?: and the error)? \\|(.*)\\| .* \\|$").FindAllStringSubmatch(document(t, "docs/reference/logs.md"), -1) {
		rows[row[1]] = row[2]
	}
	logs := &buffer{}
	s := open(t, redistest.Shared(t).Client(t), queue.Config{Logger: slog.New(handlers(logs)["text"])}, time.Time{})
	w := worker.New(s.q, worker.Config{})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ any) (string, error) {
		_, err := agentwait.Run[string](a, nil, queue.Task{Kind: "slow", Timeout: 50 * time.Millisecond})
		return "", err
	})
	worker.Handle(w, "slow", func(ctx context.Context, _ any) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	worker.Handle(w, "panics", func(context.Context, any) (any, error) { panic("at the disco") })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.enqueue(queue.Task{Kind: "agent", MaxRetries: 0})
	s.enqueue(queue.Task{Kind: "panics"})
	s.enqueue(queue.Task{Kind: "strange"})
	expected := []string{"Task timed out", "Resuming agent after task timeout", "A handler panicked", "A task's kind has no handler here: the task is given back"}
	for _, message := range expected {
		await.Until(t, message, func() bool { return len(logs.lines(message)) > 0 })
	}
	stop()
	if err := await.Receive(t, ended, "the worker ends"); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, line := range logs.lines("") {
		all := pairs(t, line)
		message := all["msg"]
		seen = append(seen, message)
		row, found := rows[message]
		if !found {
			t.Errorf("the reference has no row for %s", line)
		}
		for key := range all {
			if key != "level" && key != "msg" && !strings.Contains(row, "`"+key+"`") {
				t.Errorf("the row of %q has no key %s", message, key)
			}
		}
		if all["task_id"] != "" && (all["queue"] == "" || all["kind"] == "") {
			t.Errorf("a line about a task has no queue or kind: %s", line)
		}
		if slices.Contains(expected[2:], message) && all["worker"] != w.ID() {
			t.Errorf("the line is not of the worker %s: %s", w.ID(), line)
		}
	}
	for _, message := range expected {
		if !slices.Contains(seen, message) {
			t.Errorf("no line %q", message)
		}
	}
}
