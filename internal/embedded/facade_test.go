package embedded

import (
	"strings"
	"testing"
)

// A producer with nothing but a Redis client uses the embedded server as it uses Redis.
func TestFunctionsForOtherLanguages(t *testing.T) {
	rdb := start(t).Client()
	call := func(command string, args ...any) (any, error) {
		return rdb.Do(t.Context(), append([]any{command}, args...)...).Result()
	}
	if _, err := call("FCALL", "curfew_open", 1, "curfew:{0}"); err != nil {
		t.Fatal(err)
	}
	id, err := call("FCALL", "curfew_enqueue", 1, "curfew:{0}", "render", "payload", "{}", "timeout", "30s", "idempotency_key", "order 1")
	if text, ok := id.(string); err != nil || !ok || !strings.HasPrefix(text, "0-") {
		t.Fatalf("curfew_enqueue = %v, %v, want an id", id, err)
	}
	got, err := call("FCALL_RO", "curfew_get", 1, "curfew:{0}", id)
	if words, ok := got.([]any); err != nil || !ok || words[1] != id {
		t.Errorf("curfew_get = %v, %v", got, err)
	}
	for _, c := range []struct {
		name string
		args []any
		want string
	}{
		{"another function", []any{"FCALL", "other", 1, "curfew:{0}"}, "ERR Function not found"},
		{"a function that writes", []any{"FCALL_RO", "curfew_enqueue", 1, "curfew:{0}", "render"}, "ERR Can not execute a script with write flag using *_ro command."},
		{"no number of keys", []any{"FCALL", "curfew_open"}, "ERR wrong number of arguments for 'fcall' command"},
		{"a refusal", []any{"FCALL", "curfew_enqueue", 1, "curfew:{0}", "render", "timeout", "30"},
			`CURFEW INVALID timeout "30" has no unit: write 30s, or give timeout_ms in ms`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := rdb.Do(t.Context(), c.args...).Result(); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
