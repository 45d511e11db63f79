package main

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
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

// scripts is the text of each script of a folder, as Redis gets it.
func scripts(t *testing.T, folder fs.FS) map[string]bool {
	t.Helper()
	library, err := lua.LoadFS(folder, lua.Options{Functions: true})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, name := range library.Names() {
		texts[library.Source(name)] = true
	}
	return texts
}

// What is no Lua is found by every test, which would show nothing.
func TestEachBugCanBePlantedAndIsLua(t *testing.T) {
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	tree := os.DirFS(ours(t).lua())
	names, seen := map[string]bool{}, scripts(t, tree)
	for _, b := range bugs {
		if _, known := parts[b.by]; names[b.name] || !known {
			t.Errorf("bug %q: there are two of this name, or no part %q of the suite", b.name, b.by)
		}
		names[b.name] = true
		text, err := b.plant(tree)
		if err != nil {
			t.Error(err)
			continue
		}
		changed := ""
		for script := range scripts(t, with{tree, b.file, text}) {
			if !seen[script] {
				seen[script], changed = true, script
			}
		}
		_, code, _ := strings.Cut(changed, "\n") // the first line is the flags, for Redis alone
		if changed == "" {
			t.Errorf("bug %q changes nothing that runs, or does what another one does", b.name)
		} else if err := server.Client().ScriptLoad(context.Background(), code).Err(); err != nil {
			t.Errorf("bug %q: what is planted is no Lua: %v", b.name, err)
		}
	}
}

// with is a folder one of whose files has another text.
type with struct {
	fs.FS
	name, text string
}

func (w with) Open(name string) (fs.File, error) {
	if name == w.name {
		return fstest.MapFS{name: {Data: []byte(w.text)}}.Open(name)
	}
	return w.FS.Open(name)
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
	harmless := bug{name: "none, but another comment", file: "settle.lua", old: "-- A repeat. ", new: "-- Again. ", by: "stories"}
	if f, err := g.hunt(harmless); err != nil || f.by != survived {
		t.Errorf("what is no bug was found by %s, %v", f.by, err)
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
