package embedded

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
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
		{"a key in place of their number", []any{"FCALL", "curfew_open", "curfew:{0}"}, "ERR Bad number of keys provided"},
		{"less than no keys", []any{"FCALL", "curfew_open", -1}, "ERR Number of keys can't be negative"},
		{"more keys than there are", []any{"FCALL", "curfew_open", 2, "curfew:{0}"}, "ERR Number of keys can't be greater than number of args"},
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

// In a transaction the calls run when it is committed, and their replies come in order.
func TestFunctionsInATransaction(t *testing.T) {
	rdb := start(t).Client()
	ctx := t.Context()
	var open, enqueue, wrong, other, about *redis.Cmd
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		open = p.FCall(ctx, "curfew_open", []string{"curfew:{0}"})
		enqueue = p.FCall(ctx, "CURFEW_ENQUEUE", []string{"curfew:{0}"}, "render", "id", "0-A")
		wrong = p.FCall(ctx, "curfew_enqueue", []string{"curfew:{0}"}, "render", "timeout", "30")
		other = p.FCall(ctx, "other", []string{"curfew:{0}"})
		about = p.FCallRO(ctx, "curfew_about", nil)
		return nil
	})
	if wrong.Err() == nil || err != wrong.Err() || !strings.HasPrefix(err.Error(), "CURFEW INVALID ") {
		t.Errorf("the wrong call: error %v, and the transaction %v, want CURFEW INVALID", wrong.Err(), err)
	}
	if other.Err() == nil || other.Err().Error() != "ERR Function not found" {
		t.Errorf("another function: error %v", other.Err())
	}
	if open.Err() != nil || enqueue.Val() != "0-A" || about.Err() != nil {
		t.Errorf("the others returned %v, %v, %v", open, enqueue, about)
	}
}
