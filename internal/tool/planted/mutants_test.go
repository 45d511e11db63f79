package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	luaparse "github.com/yuin/gopher-lua/parse"
)

// edits returns what a list of mutants does to a text, without spaces that do not matter.
func edits(text string, list []mutant) (all []string) {
	for _, m := range list {
		all = append(all, m.kind+": "+strings.Join(strings.Fields(m.edit.apply(text)), " "))
	}
	return all
}

func TestEditsOfLua(t *testing.T) {
	for _, test := range []struct {
		claim, text string
		want        []string
	}{
		{"comments and strings stay", "-- if a < 1\n--[[ a == 2 ]] local s = \"a == 1\" .. 'and' .. [[ 3 ]]", nil},
		{"a condition", "if a then\n  return\nelseif b then\n  return\nend", []string{
			"negate: if not (a) then return elseif b then return end", "negate: if a then return elseif not (b) then return end"}},
		{"a condition with a function in it", "while f(function() if x then return y end end) do\nend", []string{
			"negate: while not (f(function() if x then return y end end)) do end", "negate: while f(function() if not (x) then return y end end) do end"}},
		{"comparisons", "local x = a <= b", []string{"compare: local x = a < b"}},
		{"equality", "local x = a ~= b", []string{"compare: local x = a == b"}},
		{"and", "local x = a and b", []string{"logic: local x = a or b"}},
		{"a constant", "local x = 10", []string{"constant: local x = 11"}},
		{"a fraction stays", "local x = 0.5", nil},
		{"a call", "f(a)\ng.h(b)", []string{"drop call: g.h(b)", "drop call: f(a)"}},
		{"a call whose result is used", "local x = f(a)\nx = f(a)\nreturn f(a)", nil},
		{"a call over lines", "f(a,\n  b)\ng(c)", []string{"drop call: g(c)", "drop call: f(a, b)"}},
		{"a call in a function in a call", "f(function(a)\n  g(a)\nend)", []string{"drop call: ", "drop call: f(function(a) end)"}},
		{"a call after then", "if a then f(b) end", []string{"negate: if not (a) then f(b) end", "drop call: if a then end"}},
		{"a field", "a.b = c\na[d], a.e = f\n  .. g\nlocal h", []string{"drop assignment: a[d], a.e = f .. g local h", "drop assignment: a.b = c local h"}},
		{"a variable and a function stay", "a = b\nfunction c.d(e)\nend", nil},
	} {
		if got := edits(test.text, luaMutants("a.lua", test.text)); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.claim, got, test.want)
		}
	}
}

func TestEditsOfGo(t *testing.T) {
	for _, test := range []struct {
		claim, body string
		want        []string
	}{
		{"a condition", "if err := f(); err != nil { }", []string{"negate: if err := f(); !(err != nil) { }", "compare: if err := f(); err == nil { }"}},
		{"logic", "x := a && b", []string{"logic: x := a || b"}},
		{"a constant", "x := 10", []string{"constant: x := 11"}},
		{"a call", "f(a)", []string{"drop call: "}},
		{"a lock, a deferred call and a used result stay", "mu.Lock(); defer mu.Unlock(); defer f(); x := g()", nil},
		{"a field", "a.b = c; a.n++; d = e", []string{"drop assignment: ; a.n++; d = e", "drop assignment: a.b = c; ; d = e"}},
	} {
		const before, after = "package p\nfunc f() {", "}"
		list, err := goMutants("a.go", before+test.body+after)
		if err != nil {
			t.Fatal(err)
		}
		got := edits(before+test.body+after, list)
		for i := range got {
			got[i] = strings.Replace(strings.TrimSuffix(strings.Replace(got[i], "package p func f() {", "", 1), "}"), ":  ", ": ", 1)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.claim, got, test.want)
		}
	}
}

// Mutants that are no Lua would show nothing.
func TestMutantsOfTheLuaAreLua(t *testing.T) {
	tree := os.DirFS(ours(t).tree)
	all, err := luaCandidates(tree)
	if err != nil || len(all) < 5000 {
		t.Fatalf("%d candidates, %v", len(all), err)
	}
	for _, m := range draw(all, "1", 200) {
		text, err := os.ReadFile("../../../" + m.file)
		if err != nil {
			t.Fatal(err)
		}
		for what, e := range map[string]textEdit{"edit": m.edit, "trap": m.trap} {
			if _, err := luaparse.Parse(strings.NewReader(e.apply(string(text))), m.file); err != nil {
				t.Errorf("%s:%d: the %s is no Lua: %s: %v", m.file, m.line, what, m.shown, err)
			}
		}
	}
}

func TestADrawIsStable(t *testing.T) {
	mutantsOf := func(text string) map[string]mutant {
		byID, list := map[string]mutant{}, luaMutants("a.lua", text)
		identify(list, text)
		for _, m := range list {
			byID[m.id] = m
		}
		return byID
	}
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "if a < %d then\n  f(%d)\n  f(0)\nend\n", i, i)
	}
	ids := func(text string, n int) (ids []string) {
		for _, m := range draw(mutantsOf(text), "s", n) {
			ids = append(ids, m.id)
		}
		return ids
	}
	ten := ids(text.String(), 10)
	if len(ten) != 10 || !slices.Equal(ids(text.String(), 20)[:10], ten) {
		t.Errorf("a draw of 20 does not begin with a draw of 10: %q, %q", ids(text.String(), 20), ten)
	}
	if moved := ids("-- moved\n\n"+strings.ReplaceAll(text.String(), "  f", "\tf"), 10); !slices.Equal(moved, ten) {
		t.Errorf("lines that moved are other mutants: %q, %q", moved, ten)
	}
	if n := len(mutantsOf(text.String())); n != 50*7 {
		t.Errorf("%d mutants have different ids, want 350", n)
	}
}

func TestAnOutcomeListsWhatFailed(t *testing.T) {
	for _, test := range []struct {
		claim, said string
		ended       error
		want        outcome
	}{
		{"nothing", "--- PASS: TestA (0s)\nPASS\n", nil, outcome{}},
		{"top-level tests", "--- FAIL: TestA (0s)\n    --- FAIL: TestA/b (0s)\n--- FAIL: TestC (0s)\n", errors.New("exit 1"), outcome{failed: []string{"TestA", "TestC"}}},
		{"stories", "--- FAIL: TestStories (0s)\n    --- FAIL: TestStories/redis (0s)\n        --- FAIL: TestStories/redis/complete (0s)\n",
			errors.New("exit 1"), outcome{failed: []string{"stories/complete"}}},
		{"a test that hangs", "panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestA (59s)\n\t\tTestA/b (59s)\n", errors.New("exit 2"), outcome{running: []string{"TestA"}}},
		{"a crash", "panic: nil\n", errors.New("exit 2"), outcome{crashed: true}},
	} {
		got := outcomeOf(test.said, test.ended)
		if got.said = ""; fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %+v, want %+v", test.claim, got, test.want)
		}
	}
}
