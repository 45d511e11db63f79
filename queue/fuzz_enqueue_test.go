package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// FuzzEnqueueFields checks that a producer in another language can send any fields. The script
// replies with one of its words, never with an error, and the namespace passes an audit.
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
		q, err := queue.Open(ctx, rdb, queue.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		first := []any{"id", "0-f", "kind", "k"}
		task := []any{"id", "0-g", "kind", "k", a, av, b, bv, c, cv}
		reply, err := q.Engine().Library().Run(ctx, rdb, "enqueue", q.Root(0), wire.Tasks(first, task, task)...)
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
				t.Errorf("enqueue = %q, want one of the words %s", answer, words)
			}
		}
		findings, err := inspect.Audit(ctx, q)
		if err != nil || len(findings) > 0 {
			t.Errorf("Audit = %v, %v", findings, err)
		}
		// Tasks that were accepted can be fetched.
		queues, err := rdb.SMembers(ctx, q.Root(0)+":queues").Result()
		if err != nil {
			t.Fatal(err)
		}
		ask := claim.Ask{N: 10, Seq: 1, Lease: time.Second}
		for _, name := range queues {
			ask.Quotas = append(ask.Quotas, claim.Quota{Queue: name, N: 10})
		}
		if _, err := claim.Of(q).Fetch(ctx, 0, "w", ask); err != nil {
			t.Error(err)
		}
		if findings, err := inspect.Audit(ctx, q); err != nil || len(findings) > 0 {
			t.Errorf("Audit after a fetch = %v, %v", findings, err)
		}
	})
}
