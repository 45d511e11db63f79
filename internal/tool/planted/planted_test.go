package main

import (
	"context"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// ours returns the ground of a test.
func ours(t *testing.T) *ground {
	t.Helper()
	g, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}

// tokens returns a Lua text without space and comments, which change nothing that runs, except for the flags of a call.
func tokens(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "-- Flags") {
			kept.WriteString(line)
		}
	}
	for _, t := range luaTokens(text) {
		kept.WriteString(t.text + " ")
	}
	return kept.String()
}

// A bug that is not valid Lua fails every test, which would show nothing.
func TestEachBugCanBePlantedAndIsLua(t *testing.T) {
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := ours(t)
	tree, files := os.DirFS(g.tree), os.DirFS(g.lua())
	names, seen := map[string]bool{}, map[string]bool{}
	bugs, err := choose("", "")
	if err != nil || len(bugs) < 545 {
		t.Fatalf("%d bugs, %v", len(bugs), err)
	}
	for _, b := range bugs {
		if names[b.name] {
			t.Errorf("bug %q: two bugs have this name", b.name)
		}
		names[b.name] = true
		if _, err := partOf(tree, b.by); err != nil || b.by == stories {
			t.Errorf("bug %q: it names no story and no part of the suite: %q, %v", b.name, b.by, err)
		}
		text, err := b.plant(files)
		if err != nil {
			t.Error(err)
			continue
		}
		original, err := fs.ReadFile(files, b.file)
		if err != nil {
			t.Fatal(err)
		}
		seen[b.file+tokens(string(original))] = true
		runs := b.file + tokens(text)
		if seen[runs] {
			t.Errorf("bug %q changes no code that runs, or is the same as another bug", b.name)
		}
		seen[runs] = true
		if err := server.Client().ScriptLoad(context.Background(), text).Err(); err != nil {
			t.Errorf("bug %q: the planted text is not valid Lua: %v", b.name, err)
		}
	}
}

// TestBugsAreFound plants the first bug of each kind that a story finds; a long run also plants those that other parts of
// the suite find. make planted plants all.
func TestBugsAreFound(t *testing.T) {
	if testing.Short() {
		return
	}
	g := ours(t)
	kinds, err := readBugs(tables)
	if err != nil {
		t.Fatal(err)
	}
	var sample []bug
	for _, kind := range kinds {
		i := slices.IndexFunc(kind, func(b bug) bool { return whole(b.by) == stories || size.Long() })
		if i >= 0 {
			sample = append(sample, kind[i])
		}
	}
	if err := g.control(sample); err != nil {
		t.Fatal(err)
	}
	for _, b := range sample {
		if f, err := g.hunt(b); err != nil || !f.ok {
			t.Errorf("bug %q: %s after %v, %v", b.name, f.by, f.after, err)
		}
	}
	for _, test := range []struct {
		claim string
		bug   bug
	}{
		{"an edit of a comment", bug{file: "call/settle.lua", old: "-- Ends and claims ", new: "-- Claims and ends ", by: stories}},
		{"a bug that another story finds", bug{file: "queue/queue.lua", old: "if not c or c[1] then", new: "if not c then", by: "stories/complete"}},
	} {
		if f, err := g.hunt(test.bug); err != nil || f.by != survived {
			t.Errorf("%s was found by %s, %v", test.claim, f.by, err)
		}
	}
}

func TestTheTextOfABug(t *testing.T) {
	for _, test := range []struct {
		claim, text string
		want        []bug
	}{
		{"one text for another", "# Ends.\n# Two lines.\n\nan end is lost\nin task/a.lua, found by model\n-f(a)\n+g(a)\n",
			[]bug{{"an end is lost", "task/a.lua", "f(a)", "g(a)", "model"}}},
		{"a text that goes, and several lines", "a\nin b.lua, found by full memory\n- and c\n\nd\nin e.lua, found by stories/f\n-  g\n-\n-  -- h\n+  i\n",
			[]bug{{"a", "b.lua", " and c", "", "full memory"}, {"d", "e.lua", "  g\n\n  -- h", "  i", "stories/f"}}},
		{"no text to replace", "a\nin b.lua, found by model\n+c\n", nil},
		{"nothing that finds it", "a\nin b.lua\n-c\n", nil},
	} {
		got, err := parseBugs(test.text)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %q, %v", test.claim, got, err)
		}
	}
}

func TestAStoryIsOneTest(t *testing.T) {
	tree := os.DirFS(ours(t).tree)
	for _, test := range []struct{ by, run string }{
		{"stories/complete", "^TestStories$/^redis$/^complete$"},
		{"stories", "^TestStories$/^redis$"},
		{"model", "^TestModel$"},
		{"stories/of_nothing", ""},
		{"nobody", ""},
	} {
		p, err := partOf(tree, test.by)
		if p.run != test.run || (err == nil) != (test.run != "") {
			t.Errorf("%s: runs %q, %v, want %q", test.by, p.run, err, test.run)
		}
	}
}

// A part whose tests were renamed or moved would find nothing.
func TestThePartsAreThere(t *testing.T) {
	tree := os.DirFS(ours(t).tree)
	for name, p := range parts {
		files, err := fs.Glob(tree, p.pkg+"/*_test.go")
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no tests in %s, %v", name, p.pkg, err)
		}
		var all []byte
		for _, f := range files {
			text, err := fs.ReadFile(tree, f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		for _, run := range strings.Split(p.run, "|") {
			test, _, _ := strings.Cut(strings.TrimPrefix(run, "^"), "/")
			if !regexp.MustCompile(`(?m)^func ` + strings.TrimSuffix(test, "$")).Match(all) {
				t.Errorf("%s: %s has no %s", name, p.pkg, test)
			}
		}
	}
}

func TestATextMustOccurExactlyOnce(t *testing.T) {
	for _, test := range []struct{ claim, text, want string }{
		{"once", "a b", "a c"},
		{"not at all", "a", ""},
		{"twice", "b b", ""},
	} {
		got, err := edit("f", test.text, "b", "c")
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: edit = %q, %v, want %q", test.claim, got, err, test.want)
		}
	}
}

func TestTheFirstFailureIsReported(t *testing.T) {
	for _, test := range []struct{ claim, said, want string }{
		{"no failure", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", survived},
		{"the first of two tests", "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", "TestA"},
		{"the innermost subtest", "--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n        --- FAIL: TestA/b/c (1s)\n", "TestA/b/c"},
		{"the first of two subtests", "--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n    --- FAIL: TestA/c (1s)\n", "TestA/b"},
		{"no failure, but the word in the output of a test", "x --- FAIL: TestA\n", survived},
	} {
		f := listen(strings.NewReader(test.said), time.Now())
		if f.by != test.want || f.ok != (test.want != survived) {
			t.Errorf("%s: %q, %v, want %q", test.claim, f.by, f.ok, test.want)
		}
	}
}
