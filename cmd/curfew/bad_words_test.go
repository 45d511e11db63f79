package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// badWord is a word that is no id and no name of a queue, kind or worker, or none that there is.
type badWord struct {
	claim, word string
	code        int
	want        string
}

var badIDs = []badWord{
	{"an unknown id", "0-NOBODY", app.ExitNotFound, "the id is wrong, the task is in another namespace, or its retention is over"},
	{"an id of another partition", "7-NOBODY", app.ExitUsage, "this namespace has 1 partition"},
	{"a word that is no id", "task", app.ExitUsage, "id"},
	{"an empty id", "", app.ExitUsage, "id"},
	{"a huge id", "0-" + strings.Repeat("A", 100_000), app.ExitUsage, "id"},
	{"an id with bytes", "0-\xff\xfe", app.ExitUsage, `\xff\xfe`},
	{"an id that controls a terminal", "0-\x1b[2J\x07", app.ExitUsage, `\x1b[2J\a`},
	{"an id of two lines", "0-A\n0-B", app.ExitUsage, `0-A\n0-B`},
}

var badNames = []badWord{
	{"an empty name", "", app.ExitUsage, ""},
	{"a huge name", strings.Repeat("q", 100_000), app.ExitUsage, "qqq…"},
	{"a name with bytes", "q\xff", app.ExitUsage, `q\xff`},
	{"a name that controls a terminal", "q\x1b[2J", app.ExitUsage, `q\x1b[2J`},
}

// A word that is no id, or is no name, is refused before anything is changed, and is quoted in a way that controls no terminal.
func TestBadWordsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBadCases(t)
	rdb, url := database(t)
	fillNamespace(t, rdb, "curfew")
	before := redistest.Dump(t, rdb, "")
	nearest := map[string]string{"mail": "mial", "render": "rendr", "w1": "w2", "publish": "pubish"}
	for _, l := range leaves(t) {
		words := strings.Fields(l.args)
		if len(words) == 0 || !l.connects() || l.slow || l.server {
			continue
		}
		first := words[0]
		try := func(w badWord) {
			flags, more := []string{"--redis", url}, []string{w.word}
			if len(words) > 1 && strings.HasPrefix(words[1], "-") {
				flags = append(flags, words[1:]...)
			} else {
				more = append(more, words[1:]...)
			}
			args := slices.Concat(strings.Fields(l.name), flags, []string{"--"}, more)
			k := badCase{claim: w.claim, invocation: invocation{args: args}, code: w.code, want: w.want, out: "any"}
			b.try(k)
		}
		switch {
		case slices.Contains([]string{"LIVE", "ENDED", "PROMISE", "AGENT", "RUN"}, first) && l.name != "flow graph":
			for _, w := range badIDs {
				try(w)
			}
		case nearest[first] != "" && l.name != "kind set" && l.name != "enqueue":
			try(badWord{"a mistyped name", nearest[first], app.ExitNotFound, "(did you mean " + first + "?)"})
			for _, w := range badNames {
				if l.name != "worker drain" {
					w.code, w.want = app.ExitNotFound, ""
				}
				try(w)
			}
		}
	}
	b.wait(100)
	if changed := redistest.Diff(before, redistest.Dump(t, rdb, "")); changed != "" {
		t.Errorf("something was changed:\n%s", changed)
	}
}

// What a command reads as a payload, a result, a batch or a file is checked before anything is changed.
func TestBadContentIsRefused(t *testing.T) {
	t.Parallel()
	b := newBadCases(t)
	folder := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.jsonl", `{"kind":"k","id":"0-GOOD"}`+"\n"+`{"kind":"k","timeout":"30"}`+"\n"+`{"kind":}`+"\n", 0o600)
	none := filepath.Join(folder, "none")
	closed := file("closed.json", "{}", 0)
	long := file("long.jsonl", `{"kind":"k","payload":"`+strings.Repeat("x", 2<<20)+`"}`, 0o600)
	huge := file("huge.json", "", 0o600)
	if err := os.Truncate(huge, 65<<20); err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{"real", "embedded"} {
		rdb := redistest.Embedded(t).Client()
		if on == "real" {
			rdb, _ = database(t)
		}
		fillNamespace(t, rdb, "curfew")
		before := redistest.Dump(t, rdb, "")
		for _, row := range []struct {
			args  []string
			stdin string
			code  int
			want  string
		}{
			{[]string{"enqueue", "k", "{"}, "", 2, "the payload is not JSON: byte 1: JSON is not valid: unexpected end of JSON input"},
			{[]string{"enqueue", "k", `{"a":1,}`}, "", 2, "the payload is not JSON: byte 8"},
			{[]string{"enqueue", "k", `{"a":1} 2`}, "", 2, "the payload is not JSON: byte 9"},
			{[]string{"enqueue", "k", "'{}'"}, "", 2, "the payload is not JSON: byte 1"},
			{[]string{"enqueue", "k", ""}, "", 2, "the payload is not JSON: byte 1: JSON is missing"},
			{[]string{"enqueue", "k", "\"\xff\""}, "", 2, "byte 2: JSON must be UTF-8"},
			{[]string{"enqueue", "k", strings.Repeat("[", 30_000)}, "", 2, "the payload is not JSON"},
			{[]string{"enqueue", "k", strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000)}, "", 2, "nested too deep"},
			{[]string{"enqueue", "k", "-"}, "", 2, "the payload is not JSON: byte 1: JSON is missing"},
			{[]string{"enqueue", "k", "-"}, "{\x1b[2J", 2, "the payload is not JSON: byte 2"},
			{[]string{"enqueue", "k", "@" + none}, "", 2, "no such file"},
			{[]string{"enqueue", "k", "@" + folder}, "", 2, "is a directory"},
			{[]string{"enqueue", "k", "@"}, "", 2, "the payload: @ needs the name of a file"},
			{[]string{"enqueue", "k", "@" + huge}, "", 2, "more than 64 MiB"},
			{[]string{"enqueue", ""}, "", 2, "kind"},
			{[]string{"enqueue", "two words"}, "", 2, "kind"},
			{[]string{"enqueue", "k\x1b[2J"}, "", 2, `k\x1b[2J`},
			{[]string{"enqueue", strings.Repeat("k", 100_000)}, "", 2, "128"},
			{[]string{"enqueue", "k", "--queue", "a b"}, "", 2, "queue"},
			{[]string{"enqueue", "k", "--queue", ""}, "", 2, "--queue must not be empty"},
			{[]string{"enqueue", "k", "--id", "x"}, "", 2, "id"},
			{[]string{"enqueue", "k", "--id", "9-A"}, "", 2, "this namespace has 1 partition"},
			{[]string{"enqueue", "k", "--header", "a"}, "", 2, "must be NAME=VALUE"},
			{[]string{"enqueue", "k", "--header", "=a"}, "", 2, "must be NAME=VALUE"},
			{[]string{"enqueue", "k", "--deadline", "tomorrow"}, "", 2, "must be an instant, such as"},
			{[]string{"enqueue", "k", "--deadline", "2020-01-01T00:00:00Z"}, "", 2, "in the past"},
			{[]string{"enqueue", "k", "--at", "5"}, "", 2, "must be an instant"},
			{[]string{"enqueue", "k", "--timeout", "0s"}, "", 2, "--timeout must not be 0"},
			{[]string{"enqueue", "k", "--timeout", "-5s"}, "", 2, "is negative"},
			{[]string{"enqueue", "k", "--timeout", "1 hour"}, "", 2, "--timeout"},
			{[]string{"enqueue", "k", "--timeout", "99999999999h"}, "", 2, "--timeout"},
			{[]string{"enqueue", "k", "--priority", "4"}, "", 2, "--priority 4 must be from 0 to 3"},
			{[]string{"enqueue", "k", "--retries", "many"}, "", 2, "must be a whole number"},
			{[]string{"enqueue", "k", "--retries", "99999999999999999999"}, "", 2, "--retries"},
			{[]string{"enqueue", "k", "--backoff", "exponential"}, "", 2, "needs --backoff-delay"},
			{[]string{"enqueue", "k", "--skip-bad"}, "", 2, "--skip-bad needs --batch"},
			{[]string{"enqueue", "--batch", bad}, "", 2, "line 2: byte 23: timeout"},
			{[]string{"enqueue", "--batch", bad}, "", 2, "line 3: byte 9: JSON is not valid"},
			{[]string{"enqueue", "--batch", bad}, "", 2, "nothing was enqueued: 2 of 3 lines are bad"},
			{[]string{"enqueue", "--batch", none}, "", 2, "no such file"},
			{[]string{"enqueue", "--batch", folder}, "", 2, "is a directory"},
			{[]string{"enqueue", "--batch", ""}, "", 2, "--batch needs the name of a file, or - for stdin"},
			{[]string{"enqueue", "--batch", "-"}, "", 2, "there is no task in"},
			{[]string{"enqueue", "--batch", "-"}, "\n\n \n", 2, "there is no task in"},
			{[]string{"enqueue", "--batch", "-"}, "\x00\xff\n", 2, "line 1: byte 1"},
			{[]string{"enqueue", "--batch", "-"}, "[]\n", 2, "line 1: byte 1"},
			{[]string{"enqueue", "--batch", "-"}, `{"kind":"k","timeot":"1s"}`, 2, "line 1: byte"},
			{[]string{"enqueue", "--batch", "-"}, `{"kind":"k","id":"x"}`, 2, "line 1: "},
			{[]string{"enqueue", "--batch", long}, "", 2, "line 1: "},
			{[]string{"enqueue", "--batch", "-", "k"}, "", 2, "--batch takes no argument"},
			{[]string{"enqueue", "--batch", "-", "--queue", "q"}, "", 2, "--queue is for one task"},
			{[]string{"resolve", "0-A", "{"}, "", 2, "the result is not JSON: byte 1"},
			{[]string{"resolve", "0-A", "@" + none}, "", 2, "no such file"},
			{[]string{"resolve", "0-A", "1", "--error", "x"}, "", 2, "leave out --error, or the result"},
			{[]string{"resolve", "0-A", "--error", ""}, "", 2, "--error must not be empty"},
			{[]string{"signal", "0-A", "", "1"}, "", 2, "signal"},
			{[]string{"signal", "0-A", "a\x1b[2J", "1"}, "", 2, `a\x1b[2J`},
			{[]string{"signal", "0-A", "go", "["}, "", 2, "the payload is not JSON: byte 1"},
			{[]string{"wait", "0-A", "--mode", "al"}, "", 2, "(did you mean all?)"},
			{[]string{"wait", "0-A", "--mode", "2"}, "", 2, "from 1 to the number of tasks, 1"},
			{[]string{"wait", "0-A", "--timeout", "0s"}, "", 2, "--timeout must not be 0"},
			{[]string{"ls", "--status", "DEAD"}, "", 2, `"DEAD"`},
			{[]string{"ls", "--since", "yesterday"}, "", 2, "--since"},
			{[]string{"ls", "--cursor", "\x1b[2J"}, "", 2, "cursor"},
			{[]string{"ls", "--limit", "0"}, "", 2, "--limit 0"},
			{[]string{"ls", "--agent", "nobody"}, "", 2, "id"},
			{[]string{"events", "--from", "x\x1b"}, "", 2, "cursor"},
			{[]string{"export", "-o", folder}, "", 2, "is a directory"},
			{[]string{"export", "-o", filepath.Join(none, "x")}, "", 2, "no such file"},
			{[]string{"cancel", "--all-matching", "0-A"}, "", 2, "0-A"},
			{[]string{"cancel", "--all-matching", "--yes", "--dry-run"}, "", 2, "leave one of them out"},
			{[]string{"retry", "--all-matching", "--status", "RUNNING"}, "", 2, "leave out --status RUNNING"},
			{[]string{"retry", "--all-matching", "--unbounded"}, "", 2, "an unbounded task has not ended, and cannot be retried: leave out --unbounded"},
			{[]string{"rm", "--all-matching", "--unbounded", "--yes"}, "", 2, "an unbounded task has not ended, and cannot be removed: leave out --unbounded"},
			{[]string{"cancel", "--all-matching", "--timed-out"}, "", 2, "a task that timed out has ended, and cannot be cancelled: leave out --timed-out"},
			{[]string{"queue", "drain", "mail"}, "mial\n", 1, "nothing was changed: mial is not the name of the queue, mail"},
			{[]string{"queue", "drain", "mail"}, "", 1, "nothing was changed: type the name of the queue, or give --yes"},
			{[]string{"queue", "limit", "mail", "--rate", "5"}, "", 2, "such as 10/1s"},
			{[]string{"queue", "limit", "mail", "--running", "\x1b[2J"}, "", 2, "write a whole number"},
			{[]string{"queue", "limit", "mail", "--burst", "5"}, "", 2, "--burst needs --rate"},
			{[]string{"queue", "pause", "mial"}, "", 3, "(did you mean mail?)"},
			{[]string{"kind", "set", "render", "--retries", "-1"}, "", 2, "--retries -1"},
			{[]string{"kind", "set", "a b", "--retries", "1"}, "", 2, "kind"},
			{[]string{"kind", "set", "render", "--retry-expression", "1 +"}, "", 2, "retry"},
			{[]string{"top", "--once", "--every", "1ms"}, "", 2, "must be from 100ms to 1h"},
			{[]string{"deadlines", "--limit", "5"}, "", 2, "--limit needs --by or --overdue"},
			{[]string{"namespace", "rm", "curfew", "--force"}, "crufew\n", 1, "nothing was removed"},
			{[]string{"namespace", "rm", "curfew"}, "", 1, "in use"},
			{[]string{"namespace", "rm", "crufew", "--yes"}, "", 3, "(did you mean curfew?)"},
			{[]string{"namespace", "ls", "crufew"}, "", 3, "(did you mean curfew?)"},
			{[]string{"namespace", "create", "a{\x1b"}, "", 2, `"a{\x1b" must be`},
			{[]string{"namespace", "create", "curfew", "--partitions", "4"}, "", 1, "exists with other settings"},
			{[]string{"work", "--kind", "k", "--", "/no/such/program"}, "", 2, "the command cannot be run"},
			{[]string{"work", "--http", "k=ftp://user:" + secret + "@x"}, "", 2, "must be a URL that begins with http://"},
			{[]string{"flow", "check", none}, "", 2, "no such file"},
			{[]string{"flow", "check", folder}, "", 2, "is a directory"},
			{[]string{"flow", "check", ""}, "", 2, "the name of a file is empty"},
			{[]string{"flow", "check", "-"}, "", 1, "-:1: the definition: the definition is empty"},
			{[]string{"flow", "check", "-"}, "{\x1b[2J", 1, "-:1: "},
			{[]string{"flow", "put", "-"}, "id: a\nspec: {entrypoint: b}\n", 2, "nothing was stored: -:2: spec: "},
			{[]string{"flow", "put", definitionFile, "-"}, "id: a\n", 2, "nothing was stored: -:1: "},
			{[]string{"flow", "put", "-"}, oneDefinition("other"), 5, "give the definition another version"},
			{[]string{"flow", "run", "publish", "--input", "[1]"}, "", 2, "--input must be an object"},
			{[]string{"flow", "run", "publish", "--input", "{"}, "", 2, "--input is not JSON"},
			{[]string{"flow", "run", "publish", "--input", "@" + none}, "", 2, "no such file"},
			{[]string{"flow", "run", "publish", "-p", "page"}, "", 2, "must be NAME=VALUE"},
			{[]string{"flow", "run", "publish", "-p", "page=1", "-p", "page=2"}, "", 2, "the parameter page is given twice"},
			{[]string{"flow", "run", "publish", "-p", "pgae=1"}, "", 2, "pgae"},
			{[]string{"flow", "run", "publish"}, "", 2, "page"},
			{[]string{"flow", "run", "publish", "-p", "page=1", "--version", "7"}, "", 3, "no version \"7\""},
			{[]string{"flow", "run", "publish", "-p", "page=1", "--timeout", "0s"}, "", 2, "--timeout must not be 0"},
			{[]string{"flow", "run", "publish", "-p", "page=1", "--id", "9-A"}, "", 2, "this namespace has 1 partition"},
			{[]string{"flow", "run", "two words"}, "", 3, "there is no definition"},
			{[]string{"flow", "show", "publish", "--version", ""}, "", 2, "--version must not be empty"},
			{[]string{"flow", "graph", none + ".yaml"}, "", 2, "no such file"},
			{[]string{"flow", "graph", "-"}, "id: a\n", 2, "it has no graph: -:1: "},
			{[]string{"flow", "graph", "pubish"}, "", 3, "(did you mean publish?)"},
			{[]string{"flow", "graph", "-", "--version", "1"}, "", 2, "--version is for a definition"},
			{[]string{"flow", "resume", "0-RUN", "reveiw"}, "", 3, "did you mean review?"},
			{[]string{"flow", "resume", "0-RUN", "render"}, "", 2, "render does not wait"},
			{[]string{"flow", "resume", "0-RUN", "review", "--value", "{"}, "", 2, "--value is not JSON"},
			{[]string{"flow", "get", "0-RUN", "--every", "2s"}, "", 2, "--every needs --watch"},
			{[]string{"flow", "get", "0-RUN", "--watch", "--every", "1ms"}, "", 2, "must be from 100ms to 1h"},
			{[]string{"doctor", "--role", "admin"}, "", 2, `--role "admin" must be`},
		} {
			if on == "embedded" && !size.Drawn(fmt.Sprint(row.args), 4) {
				continue
			}
			k := badCase{claim: on, code: row.code, want: row.want, out: "any"}
			k.args, k.stdin = at(urlOf(rdb), row.args), row.stdin
			k.lines = slices.Contains(row.args, bad) || row.args[0] == "namespace" || row.args[0] == "queue" || slices.Contains(row.args, "check") || slices.Contains(row.args, "--batch")
			b.try(k)
		}
		if os.Geteuid() != 0 { // root reads every file
			b.try(badCase{claim: on, code: 2, want: "permission denied", out: "none", invocation: invocation{args: []string{"enqueue", "k", "@" + closed}}})
			b.try(badCase{claim: on, code: 2, want: "permission denied", out: "none", invocation: invocation{args: []string{"enqueue", "--batch", closed}}})
		}
		b.all.Wait()
		if changed := redistest.Diff(before, redistest.Dump(t, rdb, "")); changed != "" {
			t.Errorf("%s: something was changed:\n%s", on, changed)
		}
	}
	b.wait(130)
}

// at adds --redis to the arguments of a command that connects.
func at(url string, args []string) []string {
	name := 1
	if len(commandOf(args[:1]).Subcommands) > 0 {
		name = 2
	}
	if !app.HasFlag(commandOf(args[:name]), "redis") {
		return args
	}
	return slices.Insert(slices.Clone(args), name, "--redis", url)
}

// No help has the password of the environment.
func TestNoHelpTellsThePassword(t *testing.T) {
	t.Setenv("CURFEW_REDIS_URL", "redis://:"+secret+"@localhost")
	b := newBadCases(t)
	for i, l := range leaves(t) {
		if i%3 != 0 || !l.connects() {
			continue
		}
		b.try(badCase{claim: "help", want: "USAGE", out: "any", invocation: invocation{args: append(strings.Fields(l.name), "--help")}})
	}
	b.wait(10)
}

// A command that changes many tasks continues after the reader of its output has ended.
func TestABatchGoesOnWithoutAReader(t *testing.T) {
	t.Parallel()
	const tasks = 2100 // more than a command sends at once
	s := newWorkStage(t)
	at := []string{"--redis", s.url, "--namespace", s.q.Namespace()}
	v := invocation{args: append([]string{"enqueue", "--batch", "-"}, at...), stdin: strings.Repeat(`{"kind":"k"}`+"\n", tasks), gone: true, alone: true}
	if e := v.run(t); e.code != 0 || e.errs != "" {
		t.Errorf("exit %d, %s", e.code, e.errs)
	}
	stats, err := s.q.Stats(t.Context())
	if err != nil || len(stats.Queues) != 1 || stats.Queues[0].Enqueued != tasks {
		t.Errorf("%v, %+v, want %d tasks", err, stats.Queues, tasks)
	}
	v = invocation{args: append([]string{"cancel", "--all-matching", "--yes"}, at...), gone: true, alone: true}
	if e := v.run(t); e.code != 0 || !strings.Contains(e.errs, "2,100 of 2,100 tasks were cancelled") {
		t.Errorf("exit %d, %s", e.code, e.errs)
	}
}
