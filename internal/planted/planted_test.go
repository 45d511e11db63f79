package main

import (
	"context"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/lua"
)

// ours is the ground that a test plants on.
func ours(t *testing.T) *ground {
	t.Helper()
	g, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}

// composed is what Redis gets of a folder, with another text in the place of a file.
func composed(t *testing.T, folder fs.FS, file, text string) string {
	t.Helper()
	replace := map[string]string{}
	if file != "" {
		replace[strings.TrimSuffix(file, ".lua")] = text
	}
	library, err := lua.LoadFS(folder, lua.Options{Functions: true, Replace: replace})
	if err != nil {
		t.Fatal(err)
	}
	first, functions, _ := strings.Cut(library.Text(), "\n")
	_, name, _ := strings.Cut(first, "name=") // a digest of what follows
	return strings.ReplaceAll(functions, name, "")
}

// What is no Lua is found by every test, which would show nothing.
func TestEachBugCanBePlantedAndIsLua(t *testing.T) {
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := ours(t)
	tree, files := os.DirFS(g.tree), os.DirFS(g.lua())
	names, seen := map[string]bool{}, map[string]bool{composed(t, files, "", ""): true}
	for _, b := range bugs {
		if names[b.name] {
			t.Errorf("bug %q: there are two of this name", b.name)
		}
		names[b.name] = true
		if _, err := partOf(tree, b.by); err != nil || b.by == stories {
			t.Errorf("bug %q: it must name the story, or the part of the suite, that finds it: %q, %v", b.name, b.by, err)
		}
		text, err := b.plant(files)
		if err != nil {
			t.Error(err)
			continue
		}
		runs := composed(t, files, b.file, text)
		if seen[runs] {
			t.Errorf("bug %q changes nothing that runs, or does what another one does", b.name)
		}
		seen[runs] = true
		if err := server.Client().ScriptLoad(context.Background(), text).Err(); err != nil {
			t.Errorf("bug %q: what is planted is no Lua: %v", b.name, err)
		}
	}
}

// The first bug of each kind, as a sample; make planted plants all.
func TestBugsAreFound(t *testing.T) {
	if testing.Short() {
		return
	}
	g := ours(t)
	var sample []bug
	for _, kind := range kinds {
		sample = append(sample, kind[0])
	}
	if err := g.control(sample); err != nil {
		t.Fatal(err)
	}
	for _, b := range sample {
		if f, err := g.hunt(b); err != nil || !f.inTime() {
			t.Errorf("bug %q: %s after %v, %v", b.name, f.by, f.after, err)
		}
	}
	for _, test := range []struct {
		claim string
		bug   bug
	}{
		{"what is no bug", bug{file: "call/settle.lua", old: "-- Ends and claims ", new: "-- Claims and ends ", by: stories}},
		{"what another story tells of", bug{file: "queue/free_slots.lua", old: "if not c or c[1] then", new: "if not c then", by: "stories/complete"}},
	} {
		if f, err := g.hunt(test.bug); err != nil || f.by != survived {
			t.Errorf("%s was found by %s, %v", test.claim, f.by, err)
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

// A part whose tests have another name, or another package, would find nothing.
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

func TestATextMustBeThereExactlyOnce(t *testing.T) {
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

func TestTheFirstFailureIsTold(t *testing.T) {
	for _, test := range []struct{ claim, said, want string }{
		{"none", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", survived},
		{"of a test", "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", "TestA"},
		{"of a subtest", "--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n        --- FAIL: TestA/b/c (1s)\n", "TestA/b/c"},
		{"not the second subtest", "--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n    --- FAIL: TestA/c (1s)\n", "TestA/b"},
		{"and no word of it in what a test says", "x --- FAIL: TestA\n", survived},
	} {
		f := listen(strings.NewReader(test.said), time.Now())
		if f.by != test.want || f.ok != (test.want != survived) {
			t.Errorf("%s: %q, %v, want %q", test.claim, f.by, f.ok, test.want)
		}
	}
}
