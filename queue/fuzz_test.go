package queue

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// FuzzHeaders checks that headers are read as they were enqueued, or are refused. Reading the
// headers of another producer causes no panic.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"", " ", "trace", "é", "\x00", "\n", `"`, `\`, "</script>", "\u2028", "\ufeff", "😀", "\xff", "a\xc3", "\xed\xa0\x80", "{}", `{"a":"b"}`,
		`{"a":1}`, `{"a":null}`, `[1]`, "null", `{"a":"b"`, `{"a":{"a":"b"}}`, strings.Repeat("[", 10_000), strings.Repeat("x", 2000),
	} {
		f.Add(s, s, "second", s)
	}
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string) {
		engine.Headers(name)
		task := Task{Kind: "k", Headers: map[string]string{name: value, name2: value2}}
		if err := task.check(1000); err != nil {
			var wrong *refusal.InvalidError
			if !errors.As(err, &wrong) || wrong.Field != "headers" {
				t.Errorf("check = %v, want nothing or an error of the headers", err)
			}
			return
		}
		args := task.fields(nil)
		for i := 1; i < len(args); i += 2 {
			if args[i] == "headers" {
				if got := engine.Headers(string(args[i+1].([]byte))); !maps.Equal(got, task.Headers) {
					t.Errorf("headers %q arrive as %q", task.Headers, got)
				}
				return
			}
		}
		t.Error("the call has no headers")
	})
}
