package structure

import (
	"strings"
	"testing"
)

func TestEventsInLuaAndDocumentAreCompared(t *testing.T) {
	const docs = "| Kind | Level | When | Has more |\n|---|---|---|---|\n| `task_failed` | terminal | it failed | `reason` |\n| `task_cancelled` | terminal | it was | `reason` |\n| `rejected` | all | no | `op`, `status` |\n"
	const emits = `emit(tx, "terminal", "task_" .. string.lower(status), task, "reason=" .. f(a, {b, "c"}))` + "\n" +
		`emit(tx, "all", "rejected", {id = id, x = "y"}, "op=" .. op ..
			" status=" .. task.status)` + "\n"
	for _, test := range []struct {
		claim     string
		lua, docs string
		want      []string // a part of each finding
	}{
		{"the same events", emits, docs, nil},
		{"the definition of emit is not a call", "local function emit(tx, level, kind, task, ...)\nend\n" + emits, docs, nil},
		{"fewer fields than the row has", strings.Replace(emits, "\"op=\" .. op ..\n", "", 1), docs, nil},
		{"a call that may fail", emits + `pcall(emit, tx, "all", "new", task)`, docs, []string{"has no row | `new` | all |"}},
		{"no row", emits + `emit(tx, "all", "new", task)`, docs, []string{"lua/a.lua:4: docs/reference/events.md has no row | `new`"}},
		{"no row for a computed kind", strings.Replace(emits, `"task_"`, `"job_"`, 1), docs, []string{"no Lua emits `task_cancelled`", "no Lua emits `task_failed`", "has no row | `job_`"}},
		{"a row too many", `emit(tx, "all", "rejected", task)`, docs, []string{"no Lua emits `task_cancelled`", "no Lua emits `task_failed`"}},
		{"another level", strings.Replace(emits, `"all", "rejected"`, `"terminal", "rejected"`, 1), docs, []string{"rejected has the level terminal, and in docs/reference/events.md all"}},
		{"another field", strings.Replace(emits, `" status="`, `" state="`, 1), docs, []string{"rejected has the field state, and its row"}},
		{"a kind that is an argument", emits + `emit(tx, level, kind, task)`, docs, []string{"has no row | `?`"}},
	} {
		found, err := eventTable(files("lua/a.lua", test.lua, eventsDocs, test.docs))
		fits := len(found) == len(test.want) && err == nil
		for i := range test.want {
			fits = fits && strings.Contains(found[i], test.want[i])
		}
		if !fits {
			t.Errorf("%s: found %q, %v, want %q", test.claim, found, err, test.want)
		}
	}
	if found, _ := eventTable(files("lua/a.lua", emits)); len(found) != 1 || !strings.Contains(found[0], "there is no docs/reference/events.md") {
		t.Errorf("without a document: found %q", found)
	}
}
