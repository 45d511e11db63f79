package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// A producer in another language calls the script itself, so the script checks words too.
func TestTheScriptRefusesBadWords(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	words := map[string]string{ // field: the reason for refusing a bad word
		"backoff":           "must be constant or exponential",
		"on_timeout":        "must be fail or retry",
		"retry_expression":  "must be one line of up to 8192 bytes",
		"idempotency_scope": "must be started, finished or window",
		"role":              "must be promise or timer",
		"retry_of":          "must be the id of a task",
		"node":              "must be the id of a definition, its version and the name of a node",
		"enqueued_by":       "must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit",
		"hook_success":      "must be a kind, or a kind, a space and a queue",
		"hook_failure":      "must be a kind, or a kind, a space and a queue",
		"hook_timeout":      "must be a kind, or a kind, a space and a queue",
		"hook_cancel":       "must be a kind, or a kind, a space and a queue",
	}
	bad := map[string][]string{
		"backoff":           {"", "linear", "CONSTANT", "constant\n", " constant"},
		"on_timeout":        {"", "Fail", "fail:", "fail: ", "fail: two\nlines", "retry 3", "retry\x00"},
		"retry_expression":  {"", "two\nlines", strings.Repeat("x", 8193)},
		"idempotency_scope": {"", "forever", "Started"},
		"role":              {"", "Promise", "agent", "worker"},
		"enqueued_by":       {"", "a b", "a\nb", "-a", strings.Repeat("x", 65)},
		"node":              {"", "f", "f 1", "f 1 ", "f 1 n x", "f 1 n%20", "f 1 n\n", "-f 1 n", "f 1 n=x", "f  n", strings.Repeat("f", 65) + " 1 n", "f 1 " + strings.Repeat("n", 129)},
		"retry_of":          {"", "nonsense", "0-", "0-a b", "0-a\nb", "0-{1}"},
		"hook_success":      {"", " ", "k ", " q", "k q r", "k  q", "k q:r", "k\n", "-k", "k -q", "k\x00"},
		"hook_failure":      {"{1}"}, "hook_timeout": {"*"}, "hook_cancel": {"k\r\nDEL x"},
	}
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for field, why := range words {
			for _, value := range bad[field] {
				s.refuses(t, fmt.Sprintf("INVALID %s %s", field, why), "id", "0-a", "kind", "k", "max_retries", "1", field, value)
			}
		}
		for _, id := range []string{"0-a!", "0-a!success", "0-!success", "0-a.1!success", "0-a!b!c"} {
			s.refuses(t, "INVALID id "+notAnID, "id", id, "kind", "k")
		}
		s.refuses(t, "OWNER 0-a!success ", "id", "0-a!success.1", "kind", "k")
	})
}

// The other scripts refuse bad input before they write.
func TestTheOtherScriptsRefuseBadInput(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	long := strings.Repeat("q", 129)
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-a", "kind", "k")
		s.accepts(t, "id", "0-p", "kind", "k", "role", "promise")
		for _, row := range []struct {
			script string
			args   []any
			want   string // "" for an error of the script
		}{
			{"resolve", []any{"C", "complete", "0-a", "x"}, "[INVALID id is not the id of a promise: its worker settles this task, and cancel ends it]"},
			{"resolve", []any{"C", "fail", "0-nobody", "x", "rubbish\r\n", "x", "", "x"}, "[MISSING] [MISSING] [MISSING]"},
			{"resolve", []any{"C", "complete"}, ""},
			{"resolve", []any{"C", "release", "0-p", "x"}, "!"},
			{"resolve", []any{"C", "", "0-p", "x"}, "!"},
			{"resolve", nil, "!"},

			{"control", nil, "INVALID queue must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"},
			{"control", []any{long, "paused", "1"}, "INVALID queue must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"},
			{"control", []any{"a:b", "paused", "1"}, "INVALID queue must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"},
			{"control", []any{"q", "paused"}, "INVALID paused has no value: give an empty value to remove the control"},
			{"resolve", []any{"C", "complete", "0-p"}, "!"},
			{"define", []any{"k", "max_retries", "1", "max_retries", "2"}, "INVALID max_retries is given twice"},
			{"define", []any{"k", "timeout_ms", "9007199254740992"}, "INVALID timeout_ms must be a whole number of up to 2^52"},
			{"control", []any{"q", "paused", "0"}, "INVALID paused must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "running", "0"}, "INVALID running is not a control of a queue"},
			{"control", []any{"q", "full_at", "1"}, "INVALID full_at is not a control of a queue"},
			{"control", []any{"q", "max_running", "1.5"}, "INVALID max_running must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "max_running", "nan"}, "INVALID max_running must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "max_running", "9007199254740994"}, "INVALID max_running must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "max_length", "0"}, "INVALID max_length must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "max_length", "1e9"}, "INVALID max_length must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "max_length", "9007199254740993"}, "INVALID max_length must be a whole number of at least 1, or empty to remove the control"},
			{"control", []any{"q", "rate", "1"}, "INVALID rate needs per_ms and burst: give all three, or none"},
			{"control", []any{"q", "rate", "", "per_ms", "", "burst", "1"}, "INVALID rate needs per_ms and burst: give all three, or none"},

			{"configure", nil, "OK"},
			{"configure", []any{"events"}, "INVALID events must be all, terminal or none"},
			{"configure", []any{"events", "why"}, "INVALID events must be all, terminal or none"},
			{"configure", []any{"events", "all", "events", "all"}, "INVALID events is given twice"},
			{"configure", []any{"figures", ""}, "INVALID figures must be on or off"},
			{"configure", []any{"event_mib", "65537"}, "INVALID event_mib must be a whole number from 1 to 65536"},
			{"configure", []any{"default_timeout_ms"}, "INVALID default_timeout_ms must be a whole number from 1 to 2^52, or none"},
			{"configure", []any{"default_timeout_ms", "0"}, "INVALID default_timeout_ms must be a whole number from 1 to 2^52, or none"},
			{"configure", []any{"default_timeout_ms", "1e3"}, "INVALID default_timeout_ms must be a whole number from 1 to 2^52, or none"},
			{"configure", []any{"default_timeout_ms", "4503599627370497"}, "INVALID default_timeout_ms must be a whole number from 1 to 2^52, or none"},
			{"configure", []any{"version", "1"}, "INVALID version is not a setting of a namespace"},
			{"configure", []any{"", ""}, "INVALID  is not a setting of a namespace"},
			{"define", nil, "INVALID kind must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"},
			{"define", []any{long, "timeout_ms", "1"}, "INVALID kind must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"},
			{"define", []any{"k", "timeout_ms"}, "INVALID timeout_ms must be a whole number from 1 to 2^53"},
			{"define", []any{"k", "queue_timeout_ms", "none"}, "INVALID queue_timeout_ms cannot be none: leave it out"},
			{"define", []any{"k", "existing", "replace"}, "INVALID existing is not a default of a kind"},
			{"define", []any{"k", "priority", "1"}, "INVALID priority is not a default of a kind"},
			{"define", []any{"k", "retry_expression", "true\ntimeout_ms=1", "max_retries", "1"}, "INVALID retry_expression must be one line of up to 8192 bytes"},
			{"define", []any{"k", "timeout_ms", "1\npriority=3"}, "INVALID timeout_ms must be a whole number from 1 to 2^53"},

			{"drain", []any{"C", "unknown", "500", ""}, "OK 0 0 0"},
			{"drain", []any{"C", "q", "0", ""}, "OK 0 0 0 1 0"},
			{"drain", []any{"C", "q", "5", "", "1"}, "!"},
			{"drain", []any{"C", "q", "5", "", "-1", "0"}, "!"},
			{"drain", []any{"C", "q", "5", "", "1", "x"}, "!"},
			{"drain", []any{"C", "q", "501", ""}, "!"},
			{"drain", []any{"C", "q", "-1", ""}, "!"},
			{"drain", []any{"C", "q", "all", ""}, "!"},
			{"drain", nil, "!"},

			{"delete", []any{"0-nobody", "", "rubbish\r\n", "0-nobody", "0-a"}, "[MISSING] [MISSING] [MISSING] [MISSING] [LIVE PENDING]"},
			{"delete", slices.Repeat([]any{"0-nobody"}, 501), "!"},
			{"delete", nil, ""},

			{"heartbeat", []any{"w", "15000", "0", "0-a"}, "!"},
			{"heartbeat", []any{"w", "15000", "0", "0-a", "1"}, "!"},
			{"heartbeat", []any{"w", "15000", "0", "0-a", "1", "half", "0-p", "1"}, "!"},
			{"heartbeat", nil, "!"},
		} {
			got := s.call(t, row.script, row.args...)
			if got != row.want {
				t.Errorf("%s %.200q = %.300s, want %s", row.script, row.args, got, row.want)
			}
		}
		queuetest.Sound(t, s.q)
	})
}

// call runs a script that must change nothing. It returns the reply, or "!" if the script raised
// an error.
func (s *script) call(t *testing.T, name string, args ...any) string {
	t.Helper()
	before := redistest.Dump(t, s.rdb, s.q.Root(0))
	reply, err := s.library.Run(context.Background(), s.rdb, name, s.q.Root(0), args...)
	if after := redistest.Dump(t, s.rdb, s.q.Root(0)); after != before {
		t.Errorf("%s %.200q changed something:\n%s", name, args, redistest.Diff(before, after))
	}
	var raised *lua.ScriptError
	if errors.As(err, &raised) {
		return "!"
	} else if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(reply), "["), "]")
}

// A client repeats a call whose reply was lost: the same call again changes nothing.
func TestARepeatedCallChangesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		w := &queuetest.Taker{Q: s.q, Worker: "w1"}
		s.accepts(t, "id", "0-run", "kind", "k", "cancel_grace_ms", "5000")
		claim := w.Take(t, "0-run", "default")
		for _, id := range []string{"0-a", "0-b", "0-c"} {
			s.accepts(t, "id", id, "kind", "k", "hook_cancel", "h other")
		}
		s.accepts(t, "id", "0-p", "kind", "k", "role", "promise", "hook_success", "h other")
		s.accepts(t, "id", "0-g", "kind", "k", "queue", "agents")
		w.Take(t, "0-g", "agents")
		s.accepts(t, "id", "0-g.1", "kind", "k", "role", "promise")
		s.accepts(t, "id", "0-r", "kind", "k", "role", "promise")
		for _, row := range []struct {
			script string
			args   []any
			want   string
		}{
			{"resolve", []any{"C1", "complete", "0-p", "x"}, "[OK COMPLETED]"},
			{"resolve", []any{"C2", "fail", "0-r", "x"}, "[OK FAILED]"},
			{"drain", []any{"C3", "default", "2", "why"}, "OK 2 1 2"},
			{"drain", []any{"C4", "default", "2", "why"}, "OK 1 0 1"},
			{"cancel", []any{"C5", "why", "", "0-run"}, "[CANCELLING 1800000005000]"},
			{"define", []any{"k", "timeout_ms", "1000", "max_retries", "1"}, "OK"},
			{"remember", []any{"0-g", "1", "w1", "1", "state", "s", "1", "3", "x"}, "OK"},
			{"signal", []any{"C6", "0-g", "go", "x"}, "OK"},
			{"suspend", append(aWait(1, "0-g.1", "5000", "", "1", "state", "t", "1", "4", "y"), wire.Tasks([]any{"id", "0-g.2", "kind", "k", "role", "promise"})...), now + "WAITING"},
		} {
			reply, err := s.library.Run(context.Background(), rdb, row.script, s.q.Root(0), row.args...)
			first := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(reply), "["), "]")
			if err != nil || first != row.want {
				t.Errorf("%s %q = %s, %v; want %s", row.script, row.args, first, err, row.want)
			}
			if again := s.call(t, row.script, row.args...); again != first {
				t.Errorf("%s %q again = %s, want the first reply %s", row.script, row.args, again, first)
			}
		}
		// The reply to a control says whether the queue was known. The repeat finds it known.
		for _, args := range [][]any{{"default", "paused", "1"}, {"default", "max_running", "2"}, {"default", "rate", "1", "per_ms", "1000", "burst", "1"}, {"default", "paused", ""}} {
			if _, err := s.library.Run(context.Background(), rdb, "control", s.q.Root(0), args...); err != nil {
				t.Fatal(err)
			}
			if again := s.call(t, "control", args...); again != "OK 1 0" {
				t.Errorf("control %q again = %s, want OK 1 0", args, again)
			}
		}
		w.Settle(t, queue.Outcome{ID: claim.ID, Epoch: claim.Epoch, Verb: queue.Complete})
		queuetest.Sound(t, s.q)
	})
}
