package field_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/curfew-dev/curfew/internal/field"
)

// row is a field in the table of the Lua.
type row struct {
	name, by, unit, text string
	words                []string
	least, most          int64
	bounded, none        bool
}

func luaRows(t *testing.T) (rows []row) {
	t.Helper()
	source, err := os.ReadFile("../../lua/store/task_fields.lua")
	if err != nil {
		t.Fatal(err)
	}
	state := lua.NewState()
	defer state.Close()
	if err := state.DoString(string(source) + "\nreturn task_fields"); err != nil {
		t.Fatal(err)
	}
	state.CheckTable(-1).ForEach(func(_, value lua.LValue) {
		of := value.(*lua.LTable)
		text := func(name string) string { return lua.LVAsString(of.RawGetString(name)) }
		number := func(name string) int64 { return int64(lua.LVAsNumber(of.RawGetString(name))) }
		r := row{name: lua.LVAsString(of.RawGetInt(1)), by: text("by"), unit: text("unit"), text: text("text"),
			least: number("least"), most: number("most"), bounded: of.RawGetString("least") != lua.LNil, none: lua.LVAsBool(of.RawGetString("none"))}
		if list, is := of.RawGetString("words").(*lua.LTable); is {
			list.ForEach(func(_, word lua.LValue) { r.words = append(r.words, word.String()) })
		}
		rows = append(rows, r)
	})
	return rows
}

// The Lua has the same fields as Go, with the same names, bounds, words and setters. Fields that no caller sets are in the Lua only.
func TestTheLuaHasTheSameFields(t *testing.T) {
	inLua := map[string]row{}
	for _, r := range luaRows(t) {
		if _, twice := inLua[r.name]; twice {
			t.Errorf("the Lua has %s twice", r.name)
		}
		if inLua[r.name] = r; r.by == "curfew" {
			delete(inLua, r.name)
		}
	}
	for _, f := range field.All {
		if f.Name == "id" || f.Name == "payload" { // they are not in the shape of a task
			continue
		}
		r, found := inLua[f.Name]
		delete(inLua, f.Name)
		if !found {
			t.Errorf("lua/store/task_fields.lua has no %s", f.Name)
			continue
		}
		if by := []string{"", "kind", "client"}[f.By]; r.by != by {
			t.Errorf("%s is set by %q in the Lua, want %q", f.Name, r.by, by)
		}
		if !slices.Equal(r.words, f.Words) {
			t.Errorf("%s can be %q in the Lua, want %q", f.Name, r.words, f.Words)
		}
		unit := ""
		if f.Type == field.Span && f.By != field.Client {
			unit = f.Plain()
		}
		if r.unit != unit || r.none != ((f.Type == field.Span || f.Type == field.Hook) && f.By == field.Kind) || (r.text == "hook") != (f.Type == field.Hook) {
			t.Errorf("%s: the Lua has unit %q, none %v, text %q, want unit %q for this type", f.Name, r.unit, r.none, r.text, unit)
		}
		switch bounded := f.Type == field.Number || f.Type == field.Percent; {
		case bounded && (!r.bounded || r.least != f.Least || r.most != f.Most && (r.most != 0 || f.Most != 1<<53)):
			t.Errorf("%s: the Lua allows %d to %d, want %d to %d", f.Name, r.least, r.most, f.Least, f.Most)
		case !bounded && r.bounded != (f.Type == field.Span || f.Type == field.Instant):
			t.Errorf("%s: the Lua takes a number is %v", f.Name, r.bounded)
		}
	}
	for name := range inLua {
		t.Errorf("internal/field has no %s", name)
	}
}

// The call enqueue explains each field.
func TestTheCallExplainsEachField(t *testing.T) {
	source, err := os.ReadFile("../../lua/call/enqueue.lua")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(source), "-- Returns")
	for _, f := range field.All {
		if !regexp.MustCompile(`\b` + f.Name + `\b`).MatchString(text) {
			t.Errorf("lua/call/enqueue.lua does not explain %s", f.Name)
		}
	}
}
