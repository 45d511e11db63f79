package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// suspension returns the arguments of a wait of 0-g for its child 0-g.1, once for each
// member, with more fields of the wait.
func suspension(members int, fields ...any) []any {
	args := []any{"0-g", "1", "w1", "C", 2 + len(fields)/2, "entry", 1, "mode", "all"}
	args = append(append(args, fields...), members)
	for range members {
		args = append(args, "0-g.1", "", "")
	}
	return append(args, 0, 0)
}

// settlement returns the arguments of a report that n attempts of 0-g failed.
func settlement(n int, code, delay, verdict string) []any {
	args := []any{"w1", "C", n}
	for range n {
		args = append(args, "0-g", "1", "fail", "error", "error", code, delay, verdict)
	}
	return args
}

// The first value beyond each bound is refused, and changes nothing.
func TestTheFirstValueBeyondABoundIsRefused(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	long := strings.Repeat("x", 1025)
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-g", "kind", "k", "queue", "agents", "max_retries", "1", "backoff_ms", "0")
		(&queuetest.Taker{Q: s.q, Worker: "w1"}).Take(t, "0-g", "agents")
		s.accepts(t, "id", "0-g.1", "kind", "k", "role", "promise")
		var tasks [][]any
		for i := range 501 {
			tasks = append(tasks, []any{"id", fmt.Sprint("0-t", i), "kind", "k"})
		}
		for _, row := range []struct {
			claim, script string
			args          []any
			want          string // "!" for an error that the script raises
		}{
			{"a wait of 1,001 members", "suspend", suspension(1001, "digest", "d"),
				now + "INVALID members are 1001, and a call takes 1000: send them in parts"},
			{"a digest of 1,025 bytes", "suspend", suspension(1, "digest", long), now + "INVALID digest must be one word of up to 1024 bytes"},
			{"a why of 1,025 bytes", "suspend", suspension(1, "digest", "d", "why", long),
				now + "INVALID why has 1025 bytes, and the limit is 1024"},
			{"a word that is only part of the table of words", "suspend", suspension(1, "digest", "d", "from", "says"),
				now + "INVALID from must be registered, first, or an instant in ms"},
			{"a code of 21 digits", "settle", settlement(1, strings.Repeat("1", 21), "", ""), now + "[[INVALID code must be a whole number, or empty]] [1000]"},
			{"a delay of 2^52+1 ms", "settle", settlement(1, "", "4503599627370497", ""),
				now + "[[INVALID delay must be a whole number of ms, or empty]] [1000]"},
			{"a verdict of 1,025 bytes", "settle", settlement(1, "", "", "fail: "+long[:1019]),
				now + "[[INVALID verdict must be empty, retry, fail, or fail: with a reason on one line of up to 1024 bytes]] [1000]"},
			{"501 outcomes", "settle", settlement(501, "", "", ""), "!"},
			{"501 tasks", "enqueue", wire.Tasks(tasks...), "!"},
			{"a field that is given twice", "enqueue", []any{1, 2, "kind", "k", "kind", "k", 1, "0-t", ""}, "[INVALID kind is given twice]"},
			{"an id among the fields", "enqueue", []any{1, 2, "kind", "k", "id", "0-t", 1, "0-t", ""},
				"[INVALID id belongs beside its task, not among the fields]"},
			{"a payload among the fields", "enqueue", []any{1, 2, "kind", "k", "payload", "x", 1, "0-t", ""},
				"[INVALID payload belongs beside its task, not among the fields]"},
			{"a lease of 0 ms", "fetch", []any{"w2", 1, 1, 0, 0, "default", 1}, "!"},
		} {
			t.Run(strings.ReplaceAll(row.claim, " ", "_"), func(t *testing.T) {
				if got := s.call(t, row.script, row.args...); got != row.want {
					t.Errorf("%s = %.300s, want %s", row.script, got, row.want)
				}
			})
		}
		queuetest.Sound(t, s.q)
	})
}

// A journal holds 10,000 entries. A checkpoint replaces them, and makes room.
func TestAJournalHoldsTenThousandEntries(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-g", "kind", "k", "queue", "agents")
		(&queuetest.Taker{Q: s.q, Worker: "w1"}).Take(t, "0-g", "agents")
		remember := func(checkpoint []any, from, n int) string {
			args := append([]any{"0-g", "1", "w1", len(checkpoint) / 2}, checkpoint...)
			args = append(args, n)
			for i := range n {
				args = append(args, from+i, "") // without a text the journal needs no field for its size
			}
			reply, err := s.library.Run(context.Background(), rdb, "remember", s.q.Root(0), args...)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Trim(fmt.Sprint(reply), "[]")
		}
		for i := range 20 {
			if got := remember(nil, 1+500*i, 500); got != "OK" {
				t.Fatalf("remember after %d entries = %s, want OK", 500*i, got)
			}
		}
		want := "INVALID journal would have more than 10000 entries since the last checkpoint: make Checkpoints more often"
		if got := remember(nil, 10_001, 1); got != want {
			t.Errorf("the 10,001st entry is answered %s, want %s", got, want)
		}
		if got := remember([]any{"state", "s", "children", 0, "entries", 10_000}, 10_001, 500); got != "OK" {
			t.Errorf("a checkpoint with 500 entries is answered %s, want OK", got)
		}
		queuetest.Sound(t, s.q)
	})
}

// The record keeps 4,096 bytes of the error of a retried attempt, and of the reason of a
// cancellation that waits for its grace.
func TestARecordKeeps4096BytesOfItsReasons(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-a", "kind", "k", "max_retries", "1", "backoff_ms", "0", "cancel_grace_ms", "5000")
		w := &queuetest.Taker{Q: s.q, Worker: "w1"}
		claim := w.Take(t, "0-a", "default")
		w.Settle(t, queue.Outcome{ID: "0-a", Epoch: claim.Epoch, Verb: queue.Fail, Error: strings.Repeat("e", 5000)})
		record, err := s.q.Get(context.Background(), "0-a")
		if err != nil {
			t.Fatal(err)
		}
		if record.LastError != strings.Repeat("e", 4096) {
			t.Errorf("the last error has %d bytes, want 4096", len(record.LastError))
		}
		claim = w.Take(t, "0-a", "default")
		if _, err := s.q.Cancel(context.Background(), "0-a", strings.Repeat("c", 5000)); err != nil {
			t.Fatal(err)
		}
		w.Settle(t, queue.Outcome{ID: "0-a", Epoch: claim.Epoch, Verb: queue.Complete})
		if record, err = s.q.Get(context.Background(), "0-a"); err != nil {
			t.Fatal(err)
		}
		if record.Status != queue.Cancelled || record.Error != strings.Repeat("c", 4096) {
			t.Errorf("the task is %s with an error of %d bytes, want CANCELLED with 4096", record.Status, len(record.Error))
		}
	})
}

// A call refuses a namespace of another version, and changes nothing.
func TestACallRefusesANamespaceOfAnotherVersion(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-a", "kind", "k")
		ctx := context.Background()
		if err := rdb.HSet(ctx, s.q.Root(0), "version", "3").Err(); err != nil {
			t.Fatal(err)
		}
		before := redistest.Dump(t, rdb, s.q.Root(0))
		_, err := s.library.Run(ctx, rdb, "fetch", s.q.Root(0), "w1", 1, 1, time.Second.Milliseconds(), 0, "default", 1)
		var raised *lua.ScriptError
		if !errors.As(err, &raised) || !strings.Contains(err.Error(), "have version 3, and these functions work with versions up to 2") {
			t.Errorf("fetch = %v, want an error that names both versions", err)
		}
		if kinds, err := s.q.Kinds(ctx); !errors.Is(err, refusal.ErrNewer) {
			t.Errorf("Kinds = %v, %v, want ErrNewer", kinds, err)
		}
		if after := redistest.Dump(t, rdb, s.q.Root(0)); after != before {
			t.Errorf("fetch changed something:\n%s", redistest.Diff(before, after))
		}
	})
}
