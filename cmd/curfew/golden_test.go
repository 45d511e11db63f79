package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
)

var update = flag.Bool("update", false, "write what commands print to testdata")

// goldenReads are commands that only read, with the name of their files.
var goldenReads = []struct{ file, args string }{
	{"get", "get 0-PAGE1"}, {"get_agent", "get 0-AGENT"}, {"get_failed", "get 0-PAGE3"}, {"ls", "ls"}, {"ls_none", "ls --queue nobody"}, {"ls_timed_out", "ls --timed-out"},
	{"explain", "explain 0-PAGE1 0-PAGE2 0-LATE 0-AGENT 0-APPROVAL"}, {"wait", "wait 0-PAGE3 --mode settled"},
	{"events", "events"}, {"export", "export"}, {"deadlines", "deadlines"}, {"deadlines_by_queue", "deadlines --by queue"}, {"deadlines_overdue", "deadlines --overdue"}, {"top", "top --once"},
	{"queue_ls", "queue ls"}, {"queue_get", "queue get mail"}, {"kind_ls", "kind ls"}, {"kind_get", "kind get render"}, {"worker_ls", "worker ls"}, {"worker_get", "worker get w1"},
	{"agent_ls", "agent ls"}, {"agent_get", "agent get 0-AGENT"}, {"fsck", "fsck"}, {"namespace_ls", "namespace ls"}, {"namespace_ls_name", "namespace ls shop"},
	{"namespace_rm_dry_run", "namespace rm shop --dry-run --force"}, {"doctor", "doctor"}, {"version", "version"},
}

// goldenNamespace fills the namespace shop of a server whose clock stands still.
func goldenNamespace(t *testing.T) (url string) {
	t.Helper()
	server := redistest.Embedded(t)
	at := testclock.Start
	pass := func(d time.Duration) {
		at = at.Add(d)
		server.SetTime(at)
	}
	pass(0)
	q := queuetest.Open(t, server.Client(), queue.Config{Namespace: "shop", Events: queue.EventsAll})
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	if err := q.DefineKind(t.Context(), "render", queue.Defaults{Timeout: time.Minute, MaxRetries: 2, Backoff: queue.Backoff{Delay: time.Second, Exponential: true}}); err != nil {
		t.Fatal(err)
	}
	queuetest.Enqueue(t, q, queue.Task{ID: "0-LATE", Kind: "render", Timeout: 30 * time.Second})
	w.Take(t, "0-LATE", "default")
	pass(40 * time.Second)
	queuetest.Enqueue(t, q, queue.Task{ID: "0-PAGE1", Kind: "render", Queue: "mail", Timeout: time.Hour, Payload: []byte(`{"page":"index"}`), Headers: map[string]string{"tenant": "acme"}, Priority: 2})
	for _, o := range []queue.Outcome{{ID: "0-PAGE2", Verb: queue.Complete, Result: []byte(`{"pages":7}`)}, {ID: "0-PAGE3", Verb: queue.Fail, Class: queue.ClassFailed, Error: "no paper\x1b[2J"}} {
		queuetest.Enqueue(t, q, queue.Task{ID: o.ID, Kind: "print", Queue: "print", MaxRetries: queue.NoRetries})
		o.Epoch = w.Take(t, o.ID, "print").Epoch
		w.Settle(t, o)
	}
	queuetest.Enqueue(t, q, queue.Task{ID: "0-APPROVAL", Kind: "approval", Promise: true, Timeout: 2 * time.Hour})
	queuetest.Enqueue(t, q, queue.Task{ID: "0-AGENT", Kind: "agent"})
	held := w.Take(t, "0-AGENT", "default")
	child := queue.Task{ID: "0-AGENT.c", Kind: "render", Queue: "mail", Timeout: 30 * time.Minute}
	if outcome, err := claim.Of(q).Suspend(t.Context(), claim.Suspension{Agent: "0-AGENT", Epoch: held.Epoch, Worker: "w1", Children: []queue.Task{child},
		Wait: claim.Wait{Entry: 1, Digest: "d", Members: []claim.Member{{ID: child.ID}}, Limit: time.Hour}}); outcome != nil || err != nil {
		t.Fatal(outcome, err)
	}
	if _, err := q.Pause(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	return "redis://" + server.Addr()
}

// changing matches what differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`that of Redis is \S+ (ahead of|behind) the local one, ± [0-9.nµmsh]+`), "that of Redis is SPAN ahead of the local one, ± SPAN"},
	{regexp.MustCompile(`\b[0-9A-Z]{12}\b`), "RANDOM"},
	{regexp.MustCompile(`\b[0-9A-Za-z_-]{60,}\b`), "CURSOR"},
	{regexp.MustCompile(`go1\.[0-9.]+`), "GO"},
	{regexp.MustCompile(`\b(linux|darwin|windows)/[a-z0-9]+\b`), "PLATFORM"},
	{regexp.MustCompile(`(?m)^curfew (\(|v?\d).*$`), "curfew VERSION"},
	{regexp.MustCompile(`"program":"[^"]*"(,"commit":"[^"]*")?`), `"program":"VERSION"`},
	{regexp.MustCompile(`(?m)^commit .*$`), "commit COMMIT"},
	{regexp.MustCompile(`(?m)^\w+( +)calls .*$`), "LEVEL${1}calls  SPAN"},
	{regexp.MustCompile(`\{"level":"\w+","subject":"calls"[^}]*\}`), `{"subject":"calls"}`},
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	for _, c := range changing {
		got = c.pattern.ReplaceAllString(got, c.by)
	}
	path := filepath.Join("testdata", file+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v: the command prints\n%s\nwant\n%s\n(write it with -update)", path, err, got, want)
	}
}

// commandOf returns the command that a command line names.
func commandOf(words []string) *cli.Command {
	var found *cli.Command
	for commands, i := program().Commands, 0; i < len(words) && len(commands) > 0; i++ {
		for _, command := range commands {
			if command.Name == words[i] {
				found = command
			}
		}
		commands = found.Subcommands
	}
	return found
}

// Each file of testdata/output is what a command prints in all its formats. Read it before you commit it.
func TestOutputsAreThoseOfTestdata(t *testing.T) {
	goldenOutputs(t, goldenNamespace(t), goldenReads)
}

// goldenOutputs compares what commands print of the namespace shop with their files.
func goldenOutputs(t *testing.T, url string, reads []struct{ file, args string }) {
	t.Helper()
	for _, row := range reads {
		words := strings.Fields(row.args)
		command := commandOf(words)
		var flags []string
		if app.HasFlag(command, "redis") {
			flags = append(flags, "--redis", url)
		}
		if app.HasFlag(command, "namespace") {
			flags = append(flags, "--namespace", "shop")
		}
		formats := [][]string{nil}
		if f, is := app.FlagOf(command, "output").(*cli.StringFlag); is {
			for _, format := range app.ChoicesOf(f) {
				formats = append(formats, []string{"-o", format})
			}
			if len(formats) > 1 {
				formats = formats[1:]
			}
		}
		var text strings.Builder
		before := "\x00"
		for _, format := range formats {
			args := append(append(append([]string{}, words...), format...), flags...)
			code, out, errs := curfew(t, args...)
			if code > 1 {
				t.Errorf("curfew %q: exit %d, %s", args, code, errs)
			}
			if out == before { // as json and jsonl of one object
				out = "(the same)\n"
			} else {
				before = out
			}
			text.WriteString("$ curfew " + strings.Join(append(words[:len(words):len(words)], format...), " ") + "\n" + out)
			if errs != "" {
				text.WriteString("(stderr)\n" + errs)
			}
			text.WriteString("\n")
			if strings.Contains(out+errs, "\x1b") {
				t.Errorf("curfew %q prints an escape", args)
			}
		}
		golden(t, "output/"+row.file, text.String())
	}
}

// Each file of testdata/help is the help of a command.
func TestHelpsAreThoseOfTestdata(t *testing.T) {
	n := 0
	var walk func(above []string, commands []*cli.Command)
	walk = func(above []string, commands []*cli.Command) {
		for _, command := range commands {
			words := append(above[:len(above):len(above)], command.Name)
			if command.Hidden {
				continue
			}
			n++
			code, out, errs := curfew(t, append(words, "--help")...)
			if code != 0 || errs != "" || !strings.Contains(out, "USAGE") {
				t.Errorf("curfew %q --help: exit %d, %s", words, code, errs)
			}
			for line := range strings.Lines(out) {
				if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
					t.Errorf("curfew %q --help: the line %q ends with a space", words, line)
				}
			}
			golden(t, "help/"+strings.Join(words, "_"), out)
			walk(words, command.Subcommands)
		}
	}
	walk(nil, program().Commands)
	_, out, _ := curfew(t, "--help")
	golden(t, "help/curfew", out)
	if n < 50 {
		t.Errorf("%d commands", n)
	}
}
