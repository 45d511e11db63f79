package lua

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A file must fit on two screens, and a function on one. A longer file or function is listed
// with its size, and must not grow.
const (
	fileLines     = 90 // a file has fewer lines
	functionLines = 50 // a function has fewer lines
)

var (
	longFiles = map[string]int{
		"store/index":         128,
		"store/record":        156,
		"task/plan":           131,
		"wait/journal":        99,
		"agent/suspend_agent": 121,
	}
	longFunctions = map[string]int{} // by file: its longest function
)

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range inspectAll(t) {
		source, err := embedded.ReadFile(f.name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for _, fn := range f.functions {
			longest = max(longest, fn.lines)
		}
		short(t, f.path, strings.Count(string(source), "\n"), fileLines, longFiles[f.name])
		short(t, f.path+": a function", longest, functionLines, longFunctions[f.name])
	}
}

func short(t *testing.T, what string, lines, fewer, allowed int) {
	t.Helper()
	switch {
	case allowed == 0 && lines >= fewer:
		t.Errorf("%s has %d lines, want fewer than %d", what, lines, fewer)
	case allowed > 0 && lines > allowed:
		t.Errorf("%s has %d lines, the list allows %d: make it shorter", what, lines, allowed)
	case allowed > 0 && lines < fewer:
		t.Errorf("%s has %d lines: remove it from the list", what, lines)
	}
}

func TestEveryCallCompiles(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient, o Options) {
		l, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range l.Names() {
			sha, err := rdb.ScriptLoad(t.Context(), l.Source(name)).Result()
			if err != nil {
				t.Errorf("as a script: %v", l.explain(name, &l.calls[name].script().text, err))
			} else if want := l.calls[name].script().sha; sha != want {
				t.Errorf("%s: the digest is %s, but that of Redis is %s", name, want, sha)
			}
		}
		if o.Functions {
			everyFunction(t, rdb, l)
		}
	})
}

// everyFunction checks that the server registers every call of the library.
func everyFunction(t *testing.T, rdb redis.UniversalClient, l *Library) {
	t.Helper()
	if err := rdb.FunctionLoad(t.Context(), l.Text()).Err(); err != nil {
		t.Fatalf("as a library: %v", l.explain(l.Names()[0], &l.whole, err))
	}
	libraries, err := rdb.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	if err != nil || len(libraries) != 1 {
		t.Fatalf("the server has the libraries %v, %v, want one", libraries, err)
	}
	var known []string
	for _, f := range libraries[0].Functions {
		known = append(known, f.Name)
	}
	for _, name := range l.Names() {
		if want := l.Handle(name); !slices.Contains(known, want) {
			t.Errorf("the server has no function %s", want)
		}
	}
	if len(known) != len(l.Names()) {
		t.Errorf("the server has %d functions, want %d", len(known), len(l.Names()))
	}
}
