package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// A producer in another language calls the script itself. So the script makes the checks of the Go
// client too.
func TestTheScriptRefusesInvalidNumbers(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	whole := "must be a whole number from "
	numbers := map[string]string{ // field: the reason for refusing an invalid number
		"timeout_ms": whole + "1 to 2^53", "deadline_at": whole + "1 to 2^53", "delay_ms": whole + "0 to 2^53",
		"available_at": whole + "0 to 2^53", "queue_timeout_ms": whole + "1 to 2^53", "attempt_timeout_ms": whole + "1 to 2^53",
		"max_retries": whole + "0 to 2^53", "retention_ms": whole + "0 to 2^53", "priority": whole + "0 to 3",
		"cancel_grace_ms": whole + "1 to 2^53", "warn_percent": whole + "1 to 99", "backoff_ms": whole + "0 to 2^53",
		"backoff_max_ms": whole + "1 to 2^53", "jitter": whole + "0 to 100", "idempotency_window_ms": whole + "1 to 2^53",
	}
	bad := []string{
		"", " ", "-1", "-0", "+1", "1.5", "1.", ".5", "nan", "NaN", "inf", "-inf", "Infinity", "1e3", "1E3", "0x10", "0b1", "1_000", "1,000",
		"30 s", "30s", " 30", "30 ", "30\n", "30\x00", "\x0030", "٣٠", "３０", "true", "nil", "{}", "18446744073709551616", "9007199254740994",
		strings.Repeat("9", 400), "9007199254740992.0",
	}
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for field, why := range numbers {
			values := bad
			if strings.Contains(why, "from 1") {
				values = append(values, "0", "00")
			}
			for _, value := range values {
				s.refuses(t, fmt.Sprintf("INVALID %s %s", field, why), "id", "0-a", "kind", "k", field, value)
			}
		}
		for field, value := range map[string]string{"priority": "4", "warn_percent": "100", "jitter": "101"} {
			s.refuses(t, fmt.Sprintf("INVALID %s %s", field, numbers[field]), "id", "0-a", "kind", "k", field, value)
		}
		// "none" is only for fields for which a kind can have a default.
		for _, field := range []string{"deadline_at", "delay_ms", "available_at", "max_retries", "priority", "warn_percent", "jitter", "idempotency_window_ms"} {
			s.refuses(t, fmt.Sprintf("INVALID %s %s", field, numbers[field]), "id", "0-a", "kind", "k", field, "none")
		}
	})
}

// An instant is a double in a sorted set, which holds whole numbers up to 2^53.
func TestTheScriptRefusesInstantsBeyond2To53(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for _, value := range []string{"9007199254740992", "9005399254740994"} { // the second is 2 ms too far from now
			s.refuses(t, "INVALID timeout_ms ends after 2^53 ms", "id", "0-a", "kind", "k", "timeout_ms", value)
			s.refuses(t, "INVALID delay_ms ends after 2^53 ms", "id", "0-a", "kind", "k", "delay_ms", value)
		}
		for field, from := range map[string]string{"timeout_ms": "1", "deadline_at": "1", "delay_ms": "0", "available_at": "0"} {
			s.refuses(t, "INVALID "+field+" must be a whole number from "+from+" to 2^53", "id", "0-a", "kind", "k", field, "9007199254740993")
		}
		s.accepts(t, "id", "0-a", "kind", "k", "timeout_ms", "9005399254740992")
		s.accepts(t, "id", "0-b", "kind", "k", "deadline_at", "9007199254740992")
		s.accepts(t, "id", "0-c", "kind", "k", "available_at", "9007199254740992")
		s.accepts(t, "id", "0-d", "kind", "k", "timeout_ms", "0000000000000000000001")
		queuetest.Sound(t, s.q)
	})
}

func TestTheScriptRefusesBadNames(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		names := map[string]string{"that is empty": ""}
		for claim, name := range badNames {
			names[claim] = name
		}
		for _, name := range names {
			s.refuses(t, "INVALID kind must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", "id", "0-a", "kind", name)
			s.refuses(t, "INVALID queue must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", "id", "0-a", "kind", "k", "queue", name)
		}
		for _, queue := range []string{"a:b", "a/b"} {
			s.refuses(t, "INVALID queue must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", "id", "0-a", "kind", "k", "queue", queue)
		}
		s.refuses(t, "INVALID kind is for nodes of flows, which their runs enqueue: use another kind", "id", "0-a", "kind", "flow/http_request")
		s.accepts(t, "id", "0-a", "kind", "a:b/c", "queue", "a.b_c-d")
	})
}

// A root task does not pass as a node of a flow because a child has the same shape.
func TestTheScriptChecksEachTaskOfAShape(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-owner", "kind", "k")
		reply, err := s.library.Run(t.Context(), s.rdb, "enqueue", s.q.Root(0), 1, 1, "kind", "flow/http_request", 1, "0-owner.c", "", 1, "0-root", "")
		if got := fmt.Sprint(reply, err); !strings.Contains(got, "INVALID kind is for nodes of flows") {
			t.Errorf("enqueue = %s, want that the root is refused", got)
		}
		for id, want := range map[string]int64{"0-owner.c": 1, "0-root": 0} {
			if n := s.rdb.Exists(t.Context(), s.q.Root(0)+":spec:"+id).Val(); n != want {
				t.Errorf("%d records of %s, want %d", n, id, want)
			}
		}
	})
}

func TestTheScriptRefusesBadIDs(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for claim, id := range badIDs {
			t.Run(claim, func(t *testing.T) {
				s.refuses(t, "INVALID id "+whyBad(id, notAnID), "id", id, "kind", "k")
			})
		}
		s.refuses(t, "INVALID id "+notAnID, "id", "1-01J9ZK3Q8X4M2C7W5T", "kind", "k")
		s.refuses(t, "INVALID id "+notAnID, "kind", "k")
		deep := "0-a" + strings.Repeat(".a", 15)
		s.refuses(t, "OWNER "+deep+" ", "id", deep+".a", "kind", "k") // the 16th level is allowed
		s.refuses(t, "INVALID id is nested deeper than 16: create it as a child of a task higher up", "id", deep+".a.a", "kind", "k")
	})
}

func TestTheScriptRefusesUnknownFields(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for _, field := range []string{"status", "epoch", "until", "result", "timeout", "Kind", "", " ", "kind ", "\x00", "__index", "1"} {
			s.refuses(t, "INVALID "+field+" is not a field of a task", "id", "0-a", "kind", "k", field, "x")
		}
	})
}

// A bad count makes the whole list invalid, before its first task is checked.
func TestAMalformedListChangesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		for _, args := range [][]any{
			{"x", "1", "kind", "k", "1", "0-a", ""},        // the count of shapes is not a number
			{"2", "1", "kind", "k", "1", "0-a", ""},        // more shapes than there are
			{"0", "1", "kind", "k", "1", "0-a", ""},        // fewer shapes than there are
			{"1", "x", "kind", "k", "1", "0-a", ""},        // the count of fields is not a number
			{"1", "9", "kind", "k", "1", "0-a", ""},        // more fields than there are
			{"1", "1", "kind", "k", "2", "0-a", ""},        // an unknown shape
			{"1", "1", "kind", "k", "1", "0-a"},            // a task without a payload
			{"1", "1", "kind", "k", "1", "0-a", "", "yes"}, // an argument after the last task
		} {
			before := redistest.Dump(t, rdb, s.q.Root(0))
			_, err := s.library.Run(context.Background(), rdb, "enqueue", s.q.Root(0), args...)
			var raised *lua.ScriptError
			if !errors.As(err, &raised) {
				t.Errorf("enqueue %q = %v, want an error of the script", args, err)
			}
			if after := redistest.Dump(t, rdb, s.q.Root(0)); after != before {
				t.Errorf("enqueue %q changed something:\n%s", args, redistest.Diff(before, after))
			}
		}
	})
}

// A bad task in a list is refused, and the others are stored.
func TestABadTaskInAListDoesNotAffectOthers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		got := s.run(t, []any{"id", "0-a", "kind", "k"}, []any{"id", "0-b", "kind", "k", "timeout_ms", "soon"}, []any{"id", "0-c", "kind", "k"})
		want := "[OK 0-a ] [INVALID timeout_ms must be a whole number from 1 to 2^53] [OK 0-c ]"
		if got != want {
			t.Errorf("enqueue = %s, want %s", got, want)
		}
		queuetest.Sound(t, s.q)
	})
}

// script makes calls as a client in another language does.
type script struct {
	q       *queue.Queue
	rdb     redis.UniversalClient
	library *lua.Library
}

func newScript(t *testing.T, rdb redis.UniversalClient) *script {
	t.Helper()
	library := testclock.Library(t, rdb)
	return &script{queuetest.Open(t, rdb, queue.Config{Library: library}), rdb, library}
}

// run enqueues a list of tasks and returns the answers.
func (s *script) run(t *testing.T, tasks ...[]any) string {
	t.Helper()
	reply, err := s.library.Run(context.Background(), s.rdb, "enqueue", s.q.Root(0), wire.Tasks(tasks...)...)
	if err != nil {
		t.Fatalf("enqueue %.200q: %v", tasks, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(wire.Answers(tasks, reply)), "["), "]")
}

func (s *script) one(t *testing.T, fields []any) string {
	t.Helper()
	got := s.run(t, fields)
	return strings.TrimSuffix(strings.TrimPrefix(got, "["), "]")
}

func (s *script) refuses(t *testing.T, want string, fields ...any) {
	t.Helper()
	before := redistest.Dump(t, s.rdb, s.q.Root(0))
	if got := s.one(t, fields); got != want {
		t.Errorf("enqueue %.200q = %.300s, want %s", fields, got, want)
		return
	}
	if after := redistest.Dump(t, s.rdb, s.q.Root(0)); after != before {
		t.Errorf("enqueue %.200q changed something:\n%s", fields, redistest.Diff(before, after))
	}
}

func (s *script) accepts(t *testing.T, fields ...any) {
	t.Helper()
	if got := s.one(t, fields); !strings.HasPrefix(got, "OK ") {
		t.Errorf("enqueue %q = %s, want OK", fields, got)
	}
}

// With a count of -0.5 the script could read the same argument again and again without end, and
// Redis would serve no other client.
func TestABadCountDoesNotHangRedis(t *testing.T) {
	server := redistest.Start(t)
	rdb, err := queue.Connect("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	s := newScript(t, rdb)
	for _, count := range []string{"-0.5", "-1", "0", "0.5", "nan", "inf", "-inf", "", "1e308"} {
		ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
		_, err := s.library.Run(ctx, rdb, "enqueue", s.q.Root(0), "1", count, "kind", "k", "1", "0-a", "")
		cancel()
		if err != nil && !lua.Raised(err) {
			server.Kill() // before it uses all memory
			t.Fatalf("a count of %q hangs the server: %v", count, err)
		}
	}
	if keys := redistest.Dump(t, rdb, s.q.Root(0)+":"); keys != "" {
		t.Errorf("something was stored:\n%s", keys)
	}
}
