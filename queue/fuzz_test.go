package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/wire"
)

// FuzzTaskID: whatever somebody takes for an id is one of ours or refused, and each
// that we make is one of ours.
func FuzzTaskID(f *testing.F) {
	for i, id := range []string{
		"0-01J9ZK3Q8X4M2C7W5T", "998-01J9ZK3Q8X4M2C7", "0-a", "0-a.1", "0-a.page-1.x_y", "0-a!on_timeout", "0-a" + strings.Repeat(".a", 16),
		"0-a" + strings.Repeat(".a", 17), "", "0", "-", "0-", "0-.", "0-a.", "0-a..b", "0--", "00-a", "999-a", "65536-a", "+1-a", "0-a\x00", "0-a\r\n",
		"0-{0}", "0-*", "0-ü", "0-\xff", "curfew:{0}:task:0-a", "0-" + strings.Repeat("x", 600), "f47ac10b-58cc-4372-a567-0e02b2c3d479",
	} {
		f.Add(id, i*37, int64(i)*1e12)
	}
	f.Fuzz(func(t *testing.T, id string, number int, ms int64) {
		p, err := PartitionOf(id)
		switch {
		case err != nil && (!errors.Is(err, ErrInvalid) || p != 0 || len(err.Error()) > 500):
			t.Errorf("PartitionOf(%q) = %d, %v", id, p, err)
		case err == nil && (p < 0 || p >= MaxPartitions || !strings.HasPrefix(id, strconv.Itoa(p)+"-") || strings.ContainsAny(id, "{}*?[] :\r\n\x00")):
			t.Errorf("PartitionOf(%q) = %d, and it is no id", id, p)
		}
		number, ms = abs(number)%MaxPartitions, ms&(1<<(5*timeDigits)-1)
		var g ids
		made := g.next(number, time.UnixMilli(ms))
		if p, err := PartitionOf(made); p != number || err != nil || len(made) != idLength {
			t.Errorf("PartitionOf(%q) = %d, %v, want %d: it was made", made, p, err, number)
		}
		if next := g.next(number, time.UnixMilli(ms)); next <= made {
			t.Errorf("%q was made after %q", next, made)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// FuzzHeaders: headers arrive as they were sent, or the producer is told that they
// cannot; and whatever another producer stored for headers is read without a panic.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"", " ", "trace", "é", "\x00", "\n", `"`, `\`, "</script>", "\u2028", "\ufeff", "😀", "\xff", "a\xc3", "\xed\xa0\x80", "{}", `{"a":"b"}`,
		`{"a":1}`, `{"a":null}`, `[1]`, "null", `{"a":"b"`, `{"a":{"a":"b"}}`, strings.Repeat("[", 10_000), strings.Repeat("x", 2000),
	} {
		f.Add(s, s, "second", s)
	}
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string) {
		readHeaders(name)
		task := Task{Kind: "k", Headers: map[string]string{name: value, name2: value2}}
		if err := task.check(1000); err != nil {
			var wrong *InvalidError
			if !errors.As(err, &wrong) || wrong.Field != "headers" {
				t.Errorf("check = %v, want nothing or an error of the headers", err)
			}
			return
		}
		args := task.fields(nil)
		for i := 1; i < len(args); i += 2 {
			if args[i] == "headers" {
				if got := readHeaders(string(args[i+1].([]byte))); !maps.Equal(got, task.Headers) {
					t.Errorf("headers %q arrive as %q", task.Headers, got)
				}
				return
			}
		}
		t.Error("no headers travel")
	})
}

// FuzzEnqueueFields: a producer in another language may send what it likes. The script
// answers with a word of its list, never with an error, and the namespace stays sound.
func FuzzEnqueueFields(f *testing.F) {
	redistest.NoRace(f, "one call at a time")
	for _, seed := range [][6]string{
		{"queue", "q", "payload", "\x00\xff", "headers", "{}"},
		{"timeout_ms", "1", "delay_ms", "0", "priority", "3"},
		{"timeout_ms", "9007199254740992", "queue_timeout_ms", "9007199254740992", "attempt_timeout_ms", "9007199254740992"},
		{"deadline_at", "9007199254740992", "available_at", "9007199254740992", "retention_ms", "9007199254740992"},
		{"deadline_at", "1", "idempotency_key", "", "max_retries", "9007199254740992"},
		{"delay_ms", "1", "available_at", "1", "kind", ""},
		{"timeout_ms", "1", "deadline_at", "1", "id", ""},
		{"timeout_ms", "nan", "delay_ms", "inf", "max_retries", "-inf"},
		{"timeout_ms", "0x10", "delay_ms", "1e3", "max_retries", "1.5"},
		{"timeout_ms", "18446744073709551616", "delay_ms", strings.Repeat("9", 400), "priority", "4"},
		{"id", "0-a.", "id", "0-a..b", "id", "0-."},
		{"id", "0-a.", "queue", "q", "payload", "p"},
		{"id", "0-f.", "id", "0-f..b", "queue", "q"},
		{"id", "0-f.1", "idempotency_key", "k", "timeout_ms", "1000"},
		{"id", "0-f.1", "timeout_ms", "1000", "queue", "q"},
		{"id", "1-f", "kind", "a b", "queue", "{0}"},
		{"id", "0-f\r\n*1\r\n", "kind", "\x00", "queue", "*"},
		{"status", "COMPLETED", "epoch", "9", "until", "1"},
		{"version", "2", "call", "x", "worker", "w"},
		{"", "", " ", " ", "\x00", "\x00"},
		{"idempotency_key", "a b c", "idempotency_key", "\x00", "payload", ""},
		{"idempotency_key", "0-f deadbeef", "kind", "k:/", "priority", "00000000000000000003"},
		{"__index", "x", "1", "2", "-1", "-0.5"},
		{"payload", strings.Repeat("x", 100_000), "headers", strings.Repeat("{", 10_000), "queue", strings.Repeat("q", 128)},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5])
	}
	rdb, ctx := redistest.Embedded(f).Client(), context.Background()
	words := []string{"OK", "KNOWN", "CONFLICT", "TAKEN", "OWNER", "INVALID"}
	f.Fuzz(func(t *testing.T, a, av, b, bv, c, cv string) {
		rdb.FlushAll(ctx)
		q, err := Open(ctx, rdb, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		first := []any{"id", "0-f", "kind", "k"}
		task := []any{"id", "0-g", "kind", "k", a, av, b, bv, c, cv}
		reply, err := q.library.Run(ctx, rdb, "enqueue", q.Root(0), wire.Tasks(first, task, task)...)
		if err != nil {
			t.Fatal(err)
		}
		answers, ok := reply.([]any)
		if !ok || len(answers) != 3 {
			t.Fatalf("enqueue = %v, want three answers", reply)
		}
		for _, row := range wire.Answers([][]any{first, task, task}, reply) {
			answer := row
			if len(row) < 2 || !slices.Contains(words, fmt.Sprint(row[0])) {
				t.Errorf("enqueue = %q, want a word of %s", answer, words)
			}
		}
		findings, err := q.Audit(ctx)
		if err != nil || len(findings) > 0 {
			t.Errorf("Audit = %v, %v", findings, err)
		}
		// Whatever was taken can be handed out, and all of it comes to an end.
		queues, err := rdb.SMembers(ctx, q.Root(0)+":queues").Result()
		if err != nil {
			t.Fatal(err)
		}
		ask := Ask{N: 10, Seq: 1, Lease: time.Second}
		for _, name := range queues {
			ask.Quotas = append(ask.Quotas, Quota{Queue: name, N: 10})
		}
		if _, err := q.Fetch(ctx, 0, "w", ask); err != nil {
			t.Error(err)
		}
		if findings, err := q.Audit(ctx); err != nil || len(findings) > 0 {
			t.Errorf("Audit after a fetch = %v, %v", findings, err)
		}
	})
}
