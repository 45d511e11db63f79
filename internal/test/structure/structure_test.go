package structure

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// top returns the folder of go.mod above this one.
func top(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if filepath.Dir(folder) == folder {
			break
		}
		folder = filepath.Dir(folder)
	}
	t.Fatalf("no go.mod above this test (%v)", err)
	return ""
}

func TestTheTreeKeepsTheRules(t *testing.T) {
	tree := os.DirFS(top(t))
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			found, err := rule.find(tree)
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range found {
				t.Error(finding)
			}
		})
	}
}

func files(pairs ...string) fs.FS {
	tree := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return tree
}

func imported(folder string) string {
	return "package p\n\nimport _ \"" + module + "/" + folder + "\"\n"
}

const (
	keys = "local function keys(root)\n  local p = root .. \":\"\n  return {\n" +
		"    root = root,                   -- hash     version\n" +
		"    task = p .. \"task:\",           -- hash     + id: the record of a task\n" +
		"    events = p .. \"events\",        -- stream   one entry a transition\n" +
		"  }\nend\n"
	keyDocs    = "# Keys\n\n| key | type | holds |\n|---|---|---|\n| `root` | hash | settings |\n| `root:task:<id>` | hash | a record |\n| `root:events` | stream | events |\n"
	parseOK    = "-- parse reads.\n--\n--   spec   kind queue        state  status epoch\n"
	namesOK    = "{\"role\", spec = \"=\"},\nnames.state_lines = {\"code\",\n  \"reason\"}\nnames.state_texts = {\"progress\"}\n"
	recordDocs = "# Keys\n\n### The spec\n\n| Name | Type |\n|---|---|\n| `kind` | name |\n| `queue` | name |\n| `role` | word |\n" +
		"\n### The state\n\n| `status` | word |\n| `epoch` | number |\n| `code`, `reason` | words |\n\nTexts:\n\n| `progress` | text, `x` |\n"
	keysOK = "package queue\n\nvar a, b = \":events\", \":task:\"\n"
)

func TestEachRuleFindsWhatBreaksIt(t *testing.T) {
	for _, test := range []struct {
		rule  func(fs.FS) ([]string, error)
		claim string
		tree  fs.FS
		want  []string // a part of each finding; none: nothing is found
	}{
		{imports, "down is allowed", files("queue/a.go", imported("lua"), "worker/a.go", imported("reaper"),
			"cmd/curfew/a.go", imported("internal/demo"), "queue/a_test.go", imported("internal/test/story"),
			"internal/test/story/a.go", imported("queue"), "curfewtest/a.go", imported("internal/embedded"),
			"queue/inner/a.go", imported("queue")), nil},
		{imports, "up is refused", files("queue/a.go", imported("worker")), []string{"queue/a.go:3: queue imports " + module + "/worker: its row"}},
		{imports, "up in a test is refused", files("lua/a_test.go", imported("queue")), []string{"lua/a_test.go:3"}},
		{imports, "an import that no row allows", files("worker/a.go", imported("lua")), []string{"worker/a.go:3"}},
		{imports, "the command is never imported", files("bench/a.go", imported("cmd/curfew")), []string{"no package may"}},
		{imports, "a test helper is for tests only", files("cmd/curfew/a.go", imported("internal/test/redistest")), []string{"it is for tests only"}},
		{imports, "the embedded server needs a row", files("queue/a.go", imported("internal/embedded")), []string{"queue/a.go:3"}},
		{imports, "any test may import the embedded server", files("queue/a_test.go", imported("internal/embedded")), nil},
		{imports, "an example may not, since users copy it", files("queue/example_x_test.go", imported("internal/embedded")), []string{"users copy examples"}},
		{imports, "a new room needs a row", files("extras/a.go", "package extras\n"), []string{"extras has no row"}},
		{imports, "expressions stay where they are bounded", files("queue/a.go", "package p\n\nimport _ \"github.com/expr-lang/expr/vm\"\n"), []string{"only internal/expr may"}},
		{imports, "the competitor stays in bench", files("queue/a.go", "package p\n\nimport _ \"github.com/hibiken/asynq\"\n"), []string{"only bench may"}},

		{packageComments, "a comment in one file", files("a/a.go", "// Package a is one.\npackage a\n", "a/b.go", "package a\n"), nil},
		{packageComments, "a comment of a command", files("cmd/x/a.go", "// Command x runs.\npackage main\n"), nil},
		{packageComments, "a package of tests alone", files("a/a_test.go", "package a_test\n"), nil},
		{packageComments, "no comment", files("a/a.go", "package a\n"), []string{`a has no package comment that begins with "Package a "`}},
		{packageComments, "the comment of another package", files("a/a.go", "// Package b is two.\npackage a\n"), []string{"Package a"}},
		{packageComments, "a comment apart from the package clause", files("a/a.go", "// Package a is one.\n\npackage a\n"), []string{"Package a"}},
		{packageComments, "a comment on a test alone", files("a/a.go", "package a\n", "a/a_test.go", "// Package a is one.\npackage a\n"), []string{"Package a"}},

		{stateInGo, "Go that reads", files("queue/a.go", "package queue\n\nfunc f() { rdb.HGetAll(ctx, k) }\n"), nil},
		{stateInGo, "Go that writes", files("queue/a.go", "package queue\n\nfunc f() { rdb.ZAdd(ctx, k) }\n"), []string{"queue/a.go:3: ZAdd writes to Redis"}},
		{stateInGo, "a test may", files("queue/a_test.go", "package queue\n\nfunc f() { rdb.ZAdd(ctx, k) }\n"), nil},

		{pipelines, "an error that is dropped", files("a/a.go", "package a\n\nfunc f() {\n\trdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { return nil })\n}\n"), []string{"a/a.go:4: the error"}},
		{pipelines, "commands that are sent later", files("a/a.go", "package a\n\nfunc f() {\n\tpipe.Exec(ctx)\n}\n"), []string{"a/a.go:4"}},
		{pipelines, "an error that is kept", files("a/a.go", "package a\n\nfunc f() {\n\t_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { return nil })\n}\n"), nil},
		{pipelines, "the function that keeps it", files("a/a.go", "package a\n\nfunc f() {\n\tengine.Pipelined(ctx, rdb, func(pipe redis.Pipeliner) {})\n}\n"), nil},

		{sleeps, "a sleep", files("a/a_test.go", "package a\n\nfunc f() {\n\ttime.Sleep(1)\n}\n"), []string{"a/a_test.go:4: a test sleeps"}},
		{sleeps, "a sleep by another name", files("a/a_test.go", "package a\n\nvar rest = time.Sleep\n"), []string{"a/a_test.go:3"}},
		{sleeps, "a reason on the line above", files("a/a_test.go", "package a\n\nfunc f() {\n\t// sleeps: nothing tells\n\ttime.Sleep(1)\n}\n"), nil},
		{sleeps, "a reason on the same line", files("a/a_test.go", "package a\n\nfunc f() {\n\ttime.Sleep(1) // sleeps: nothing tells\n}\n"), nil},
		{sleeps, "an empty reason", files("a/a_test.go", "package a\n\nfunc f() {\n\t// sleeps:\n\ttime.Sleep(1)\n}\n"), []string{":5"}},
		{sleeps, "the reason of another sleep", files("a/a_test.go", "package a\n\nfunc f() {\n\t// sleeps: nothing tells\n\ttime.Sleep(1)\n\ttime.Sleep(1)\n}\n"), []string{":6"}},
		{sleeps, "code outside of tests", files("a/a.go", "package a\n\nfunc f() { time.Sleep(1) }\n"), nil},

		{programs, "a program", files("a/a_test.go", "package a\n\nvar err = os.WriteFile(p, b, 0o755)\n"), []string{"a/a_test.go:3: a test writes a program"}},
		{programs, "an old octal number", files("a/a_test.go", "package a\n\nvar err = os.WriteFile(p, b, 0700)\n"), []string{"a/a_test.go:3"}},
		{programs, "a file", files("a/a_test.go", "package a\n\nvar err = os.WriteFile(p, b, 0o644)\n"), nil},
		{programs, "code outside of tests", files("a/a.go", "package a\n\nvar err = os.WriteFile(p, b, 0o755)\n"), nil},

		{realTime, "a limit of the time since", since("if time.Since(began) > time.Second { t.Error() }"), []string{"a/a_test.go:4: a test has a limit of real time"}},
		{realTime, "a limit of a variable", since("if took := time.Since(began); err != nil || took >= most { t.Error() }"), []string{":4"}},
		{realTime, "a limit that is turned round", since("took := time.Since(began) / 3\n\tif most < took { t.Error() }"), []string{":5"}},
		{realTime, "a limit of a rate", since("rate := n / time.Since(began).Seconds()\n\tif rate > most { t.Error() }"), nil},
		{realTime, "a limit of a part", since("took := time.Since(began)\n\teach := took / n\n\tif each > most { t.Error() }"), []string{":6"}},
		{realTime, "a least time", since("if took := time.Since(began); took < least { t.Error() }"), nil},
		{realTime, "a reason", since("// real time: it ends the loop\n\tif time.Since(began) > most { break }"), nil},
		{realTime, "a variable of another function", files("a/a_test.go", "package a\n\nfunc f() { took := time.Since(x); print(took) }\n\nfunc g(took int) bool { return took > 1 }\n"), nil},
		{realTime, "the package for it", files("internal/test/timing/a_test.go", "package a\n\nfunc f() bool { return time.Since(began) > 1 }\n"), nil},
		{realTime, "code outside of tests", files("a/a.go", "package a\n\nfunc f() bool { return time.Since(began) > 1 }\n"), nil},

		{terminalStatus, "a live status", lua(`task.status, task.worker = "RUNNING", name`), nil},
		{terminalStatus, "a task that is created live", lua(`local d = {status = "PENDING", rich = true}`), nil},
		{terminalStatus, "a task that does not exist", lua(`tasks[id] = {id = id, status = false}`), nil},
		{terminalStatus, "a status that is compared", lua(`return task.status == "FAILED" or {x = task.status == "FAILED"}`), nil},
		{terminalStatus, "a status that is read", lua(`local s = redis.call("HMGET", key, "status")`), nil},
		{terminalStatus, "a status in an event", lua(`emit(tx, "all", "rejected", task, "status", task.status)`), nil},
		{terminalStatus, "a comment", lua(`-- task.status = "FAILED"`), nil},
		{terminalStatus, "a string", lua(`local s = 'task.status = "FAILED"'`), nil},
		{terminalStatus, "an argument of finish", lua(`finish(tx, task, {status = "FAILED", reason = "error"})`), nil},
		{terminalStatus, "the end of a task", files("lua/task/finish.lua", "local function change_record(tx, task, ending)\n  task.status, task.result = ending.status, ending.result\nend"), nil},
		{terminalStatus, "another function beside it", files("lua/task/finish.lua", "local function load_task(tx, task)\n  task.status = task.other\nend"), []string{"lua/task/finish.lua:2"}},
		{terminalStatus, "a file that returns how a task ends", files("lua/task/ending.lua", `return {status = "COMPLETED"}`), nil},
		{terminalStatus, "an assignment in such a file", files("lua/task/ending.lua", `task.status = "COMPLETED"`), []string{"lua/task/ending.lua:1"}},
		{terminalStatus, "a status that is decoded", files("lua/store/record.lua", "local function parse(task, status) task.status = status end"), nil},
		{terminalStatus, "a terminal status", lua("\n" + `task.status = "COMPLETED"`), []string{"lua/a.lua:2: gives a status"}},
		{terminalStatus, "in single quotes", lua(`task.status = 'FAILED'`), []string{"lua/a.lua:1"}},
		{terminalStatus, "with an index expression", lua(`task["status"] = "FAILED"`), []string{"lua/a.lua:1"}},
		{terminalStatus, "in a multiple assignment", lua(`task.worker, task.status = false, "CANCELLED"`), []string{"lua/a.lua:1"}},
		{terminalStatus, "a value that a function returns", lua(`task.worker, task.status = f()`), []string{"lua/a.lua:1"}},
		{terminalStatus, "a variable", lua(`task.status = status`), []string{"lua/a.lua:1"}},
		{terminalStatus, "a string that begins like a live one", lua(`task.status = "PENDING" .. x`), []string{"lua/a.lua:1"}},
		{terminalStatus, "with record.set", lua(`record.set(tx, task, "status", "FAILED")`), []string{"lua/a.lua:1"}},
		{terminalStatus, "a task that is created ended", lua(`local d = {kind = k,` + "\n" + ` status = "COMPLETED"}`), []string{"lua/a.lua:2"}},
		{terminalStatus, "in a function of a table in a loop", lua(`for i = 1, 2 do f({g = function() t.status = "FAILED" end}) end`), []string{"lua/a.lua:1"}},
		{terminalStatus, "in a table inside the argument of finish", lua(`finish(tx, {status = "FAILED", of = {status = "FAILED"}})`), []string{"lua/a.lua:1"}},

		{joins, "errors of several calls", files("a/a.go", "package a\n\nvar err = errors.Join(err, other)\n"), nil},
		{joins, "an error that callers act on", files("a/a.go", "package a\n\nvar err = errors.Join(err, refusal.ErrNotFound)\n"), []string{`a/a.go:3: ErrNotFound is joined`}},
		{joins, "one of the package", files("a/a.go", "package a\n\nvar err = errors.Join(ErrBusy, err)\n"), []string{`a/a.go:3: ErrBusy is joined`}},
		{reasons, "a verb", files("a/a.go", "package a\n\nvar err = refusal.Invalid(\"n\", \"must be 1\")\n"), nil},
		{reasons, "the value before the verb", files("a/a.go", "package a\n\nvar err = refusal.Invalid(\"n\", \"%d must be 1\", n)\n"), nil},
		{reasons, "a reason from elsewhere", files("a/a.go", "package a\n\nvar err = refusal.Invalid(field, \"%s\", why)\n"), nil},
		{reasons, "no verb", files("a/a.go", "package a\n\nvar err = refusal.Invalid(\"n\", \"give a \"+\"number\")\n"), []string{`a/a.go:3: the reason of a refusal begins with "give"`}},
		{reasons, "verbs in Lua", lua(`if x then return {"INVALID", "n", "is 0"} elseif y then return "n", "must be " .. n end` + "\n" + `note.field, note.why = name, "has no value"`), nil},
		{reasons, "a reason in a variable", lua(`return {"INVALID", field, why}`), nil},
		{reasons, "other values", lua(`return nil, "its spec cannot be read"`), nil},
		{reasons, "no verb in an answer", lua(`return nil, {"CHILD", 1, "INVALID", "n", "the number is 0"}`), []string{`lua/a.lua:1: the reason of a refusal begins with "the"`}},
		{reasons, "no verb in two values", lua(`return "n", "give a number"`), []string{`begins with "give"`}},
		{reasons, "no verb in a note", lua(`s.field, s.why = name, "twice given"`), []string{`begins with "twice"`}},
		{reasons, "a value before the verb in Lua", lua(`return {"INVALID", "n", n .. " is 0"}`), []string{`begins with ""`}},

		{luaFloors, "uses of lower floors and of the own folder", files("lua/task/a.lua", "-- @use task/b\n-- @use wait/c\n", "lua/call/d.lua", "-- @use unit/e\n", "other/x.lua", ""), nil},
		{luaFloors, "a use upwards", files("lua/task/a.lua", "-- a\n-- @use agent/b\n"), []string{"lua/task/a.lua:2: uses agent/b"}},
		{luaFloors, "a use of members upwards", files("lua/task/a.lua", "-- @use agent/b: c, d\n"), []string{"lua/task/a.lua:1: uses agent/b"}},
		{luaFloors, "a use on the same floor", files("lua/check/a.lua", "-- @use queue/b\n"), []string{"lua/check/a.lua:1: uses queue/b"}},
		{luaFloors, "a folder without a floor", files("lua/attic/a.lua", ""), []string{"the folder attic has no floor"}},
		{writesInLua, "commands that read", lua(`local a, b = redis.call("GET", k), redis.pcall("zrange", k, 0, 1)` + "\n" + `local c, d = try(tx, "HGET", k, "f"), ask("ZCARD", k)`), nil},
		{writesInLua, "deferred commands", lua(`later.before(tx, "HSET", k, "f", 1)` + "\n" + `later.after(tx, "DEL", k)`), nil},
		{writesInLua, "a comment", lua(`-- redis.call("SET", k)`), nil},
		{writesInLua, "a pcall of another function", lua(`local ok = pcall(read, tx, id)`), nil},
		{writesInLua, "a file that may", files("lua/store/record.lua", "local record = {}\nfunction record.write(texts) redis.call('MSET', unpack(texts)) end"), nil},
		{writesInLua, "another function beside it", files("lua/store/record.lua", "local function parse(texts) redis.call('MSET', unpack(texts)) end"), []string{"MSET in record.lua: parse"}},
		{writesInLua, "a command that writes", lua("\n" + `redis.call("SET", k, 1)`), []string{"lua/a.lua:2: SET in a.lua: a call must not write"}},
		{writesInLua, "in lower case", lua(`redis.pcall("hset", k, 1)`), []string{"lua/a.lua:1: HSET"}},
		{writesInLua, "by a helper", lua(`local n = try(tx, "ZPOPMIN", k)`), []string{"lua/a.lua:1: ZPOPMIN"}},
		{writesInLua, "by another helper", lua(`return {ask("SPOP", k)}`), []string{"lua/a.lua:1: SPOP"}},
		{writesInLua, "in a pcall", lua(`pcall(redis.call, "DEL", k)`), []string{"lua/a.lua:1: DEL"}},
		{writesInLua, "an unknown command", lua(`redis.call("FUTURE", k)`), []string{"lua/a.lua:1: FUTURE"}},
		{writesInLua, "a computed command", lua(`redis.call(command, k)`), []string{"lua/a.lua:1: a computed command"}},
		{writesInLua, "the elements of an array", lua(`redis.call(unpack(words))`), []string{"lua/a.lua:1: a computed command"}},
		{writesInLua, "deep in other expressions", lua(`if a then return function() while b do f({x = redis.call("DEL", k)}) end end end`), []string{"lua/a.lua:1: DEL"}},

		{onlyIn("XADD", "lua/unit/unit.lua"), "its own file", files("lua/unit/unit.lua", `redis.call("XADD", k)`), nil},
		{onlyIn("XADD", "lua/unit/unit.lua"), "a comment", lua(`-- "XADD"`), nil},
		{onlyIn("XADD", "lua/unit/unit.lua"), "another file", lua("\n" + `redis.call("xadd", k.events, "*")`), []string{"lua/a.lua:2: XADD"}},
		{onlyIn("XADD", "lua/unit/unit.lua"), "a deferred command", lua(`later.after(tx, 'XADD', k.events)`), []string{"lua/a.lua:1"}},
		{onlyIn("TIME", "lua/store/now.lua"), "a second reader of the clock", lua(`local t = redis.call("TIME")`), []string{"lua/a.lua:1: TIME"}},
		{onlyIn("TIME", "lua/store/now.lua"), "a field with a similar name", lua(`local t = task["time_"]`), nil},

		{keyTable, "the same keys", files(keysLua, keys, keysDocs, keyDocs, keysGo, keysOK), nil},
		{keyTable, "other entries after an empty line", files(keysLua, strings.Replace(keys, "  }\n", "\n    put_off = {}, -- later\n  }\n", 1), keysDocs, keyDocs, keysGo, keysOK), nil},
		{keyTable, "a key after the empty line", files(keysLua, strings.Replace(keys, "  }\n", "\n    x = p .. \"x\",\n  }\n", 1), keysDocs, keyDocs, keysGo, keysOK), []string{"after the empty line"}},
		{keyTable, "no document", files(keysLua, keys, keysGo, keysOK), []string{"there is no docs/reference/keys.md"}},
		{keyTable, "no row", files(keysLua, keys, keysDocs, without(keyDocs, "| `root:task"), keysGo, keysOK), []string{"has no row | `root:task:<id>` | hash |"}},
		{keyTable, "another type", files(keysLua, keys, keysDocs, strings.Replace(keyDocs, "stream", "list", 1), keysGo, keysOK), []string{"`root:events` is a list, and in lua/store/keys.lua a stream"}},
		{keyTable, "another parameter", files(keysLua, keys, keysDocs, strings.Replace(keyDocs, "<id>", "<task>", 1), keysGo, keysOK),
			[]string{"has no row | `root:task:<id>` | hash |", "`root:task:<task>` is not named"}},
		{keyTable, "a row too many", files(keysLua, keys, keysDocs, keyDocs+"| `root:old` | set | gone |\n", keysGo, keysOK), []string{"`root:old` is not named in lua/store/keys.lua"}},
		{keyTable, "a key without its type", files(keysLua, strings.Replace(keys, "-- stream ", "-- ", 1), keysDocs, without(keyDocs, "| `root:events"), keysGo, "package queue\n"), []string{"events has no comment with its type"}},
		{keyTable, "a prefix without the appended part", files(keysLua, strings.Replace(keys, "+ id: ", "", 1), keysDocs, without(keyDocs, "| `root:task"), keysGo, "package queue\n"), []string{"task has no comment with its type"}},
		{keyTable, "two names for one key", files(keysLua, strings.Replace(keys, "events =", "stream =", 1), keysDocs, keyDocs, keysGo, keysOK), []string{`stream names the key "events"`}},
		{keyTable, "a line that is not a key", files(keysLua, strings.Replace(keys, "events = p", "events = q", 1), keysDocs, without(keyDocs, "| `root:events"), keysGo, "package queue\n"), []string{"cannot read"}},
		{keyTable, "an empty file", files(keysLua, "", keysDocs, "", keysGo, "package queue\n"), []string{"names no keys"}},
		{keyTable, "a key that only Go names", files(keysLua, keys, keysDocs, keyDocs, keysGo, "package queue\n\nvar a = \":evnts\"\n"), []string{`internal/engine/keys.go: ":evnts" is not named`}},

		{recordTable, "the same fields", record(parseOK, namesOK, recordDocs), nil},
		{recordTable, "no row for a word of the first line", record(parseOK, namesOK, without(recordDocs, "| `kind`")), []string{"has no row | `kind` | under \"### The spec\""}},
		{recordTable, "no row for a text", record(parseOK, namesOK, without(recordDocs, "| `progress`")), []string{"has no row | `progress` | under \"### The state\""}},
		{recordTable, "a row under the other heading", record(parseOK, "{\"role\", spec = \"=\"},\n{\"code\", spec = \"=\"},\n{\"reason\", spec = \":\"},\nnames.state_texts = {\"progress\"}\n", recordDocs),
			[]string{"has no row | `code` | under \"### The spec\"", "has no row | `reason` |", "`code` is not a name of a state", "`reason` is not a name of a state"}},
		{recordTable, "a row too many", record(parseOK, namesOK, recordDocs+"| `old` | gone |\n"), []string{"`old` is not a name of a state"}},
		{recordTable, "rows under another heading", record(parseOK, namesOK, recordDocs+"\n## A wait\n\n| `mode` | word |\n"), nil},
		{recordTable, "no names for the first lines", record("", namesOK, recordDocs), []string{"does not name the words"}},
		{recordTable, "no document", files(recordLua, parseOK+namesOK), []string{"there is no docs/reference/keys.md"}},

		{changelog, "a heading for unreleased changes", files("CHANGELOG.md", "# Changelog\n\n## Unreleased\n"), nil},
		{changelog, "no changelog", files(), []string{"there is no CHANGELOG.md"}},
		{changelog, "no such heading", files("CHANGELOG.md", "# Changelog\n"), []string{"has no heading"}},
	} {
		found, err := test.rule(test.tree)
		if err != nil {
			t.Errorf("%s: %v", test.claim, err)
		}
		fits := len(found) == len(test.want)
		for i := range test.want {
			fits = fits && strings.Contains(found[i], test.want[i])
		}
		if !fits {
			t.Errorf("%s: found %q, want %q", test.claim, found, test.want)
		}
	}
}

// mayWrite must not list a function that writes nothing.
func TestFunctionsThatMayWriteDo(t *testing.T) {
	found, err := writesInLua(files("lua/unit/unit.lua", `local function write_root(k) redis.call("HSET", k) end`, "lua/store/record.lua", `local record = redis.call("MGET", k)`))
	if err != nil || !slices.Contains(found, "lua/store/record.lua: record: it writes nothing: remove it from mayWrite") ||
		slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "lua/unit/unit.lua") }) {
		t.Errorf("found %q, %v, want record among them, and not write_root", found, err)
	}
}

func lua(text string) fs.FS { return files("lua/a.lua", text) }

func record(parse, names, docs string) fs.FS {
	return files(recordLua, parse+names, fieldsLua, names, keysDocs, docs)
}

func without(text, line string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, line) })
	return strings.Join(lines, "\n")
}

func TestARowNamesOnlyRoomsAboveIt(t *testing.T) {
	before := map[string]bool{}
	for _, r := range rooms {
		for _, may := range r.may {
			if !before[may] {
				t.Errorf("%s may import %s, which is below it or has no row", r.name, may)
			}
		}
		before[r.name] = true
	}
}

func TestHiddenFoldersAndTestdataAreSkipped(t *testing.T) {
	bad := "package b\n"
	found, err := packageComments(files(".git/a.go", bad, "lua/testdata/a.go", bad, "_old/a.go", bad, "a/a.go", bad))
	if err != nil || len(found) != 1 {
		t.Errorf("found %q, %v, want only a", found, err)
	}
}

func TestLuaIsSplitIntoLexemes(t *testing.T) {
	var got []string
	for _, t := range lex("a.b = \"x -- y\" .. 'it\\'s' --[[ long\n\"no\" ]] c -- \"no\"\n[[raw \"x\"]] d1") {
		got = append(got, t.text)
	}
	want := []string{"a", ".", "b", "=", "x -- y", "..", `it\'s`, "c", `raw "x"`, "d1"}
	if !slices.Equal(got, want) {
		t.Errorf("lex = %q, want %q", got, want)
	}
	if tokens := lex("--[[\n\n]]x"); len(tokens) != 1 || tokens[0].line != 3 {
		t.Errorf("lex = %v, want x in line 3", tokens)
	}
}

// since returns a test with a function of these statements.
func since(body string) fs.FS {
	return files("a/a_test.go", "package a\n\nfunc f() {\n\t"+body+"\n}\n")
}
