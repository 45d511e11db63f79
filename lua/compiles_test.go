package lua

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
