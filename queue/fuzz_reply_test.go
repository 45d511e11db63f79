package queue

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/reaper"
)

// FuzzReply checks that a reply that the scripts never give (from another version, a proxy or a
// faulty server) causes no panic. It gives an error, or the parts that can be read.
func FuzzReply(f *testing.F) {
	task := []any{int64(0), "payload", "kind", "k", "queue", "q", "status", "PENDING", "created_at", "1800000000000"}
	for _, seed := range []any{
		nil, int64(0), int64(-1), "", "OK", 1.5, true, []any{}, []any{nil}, []any{[]any{}},
		errors.New("ERR"), map[any]any{"OK": int64(1)},
		[]any{"OK", int64(4), int64(1800000000000)}, []any{"OK", int64(0)}, []any{"OK", int64(-3)}, []any{"OK", int64(1 << 40)}, []any{"OK", "x"},
		[]any{"NEWER", "99"}, []any{"PARTITIONS", "4"},
		[]any{[]any{"OK", "0-a", "1800000000000"}}, []any{[]any{"KNOWN", "0-a", ""}}, []any{[]any{"CONFLICT", "0-a"}}, []any{[]any{"OWNER", "0-a", ""}},
		[]any{[]any{"INVALID", "queue", "why"}}, []any{[]any{"BROKEN", "0-a", "why"}}, []any{[]any{"OK"}},
		[]any{[]any{"CANCELLED"}}, []any{[]any{"ALREADY", "COMPLETED", "result"}}, []any{[]any{"ALREADY"}}, []any{[]any{"MISSING"}},
		[]any{int64(1800000000000), task}, []any{int64(1), task[:3]}, []any{int64(1), []any{}},
		[]any{int64(1), []any{"PENDING", "9007199254740992"}}, []any{int64(1), []any{"", ""}}, []any{int64(1), []any{"BROKEN", ""}},
		[]any{int64(1), int64(500), int64(1), []any{"timed_out", int64(3)}, "0-a: :12: error"}, []any{int64(1), int64(-1 << 62), nil, []any{"removed"}},
		[]any{int64(1), []any{"deadlines", int64(3)}, []any{"q", "ready", int64(1), "running", "2"}}, []any{int64(1), []any{"deadlines"}, []any{}},
	} {
		f.Add(wire.Encode(nil, seed))
	}
	rdb := redistest.Embedded(f).Client()
	q, err := Open(context.Background(), rdb, Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	lie := &wire.Liar{}
	rdb.AddHook(lie)
	f.Fuzz(func(t *testing.T, data []byte) {
		lie.Says, _ = wire.Decode(data, 0)

		engine.Text(lie.Says)
		engine.Number(lie.Says)
		engine.Instant(lie.Says)
		ReadRecord("0-a", lie.Says)
		readCancellation(lie.Says)
		readCounts(lie.Says, 0)
		readCounts(lie.Says, 1)
		new(Stats).addQueue(map[string]*QueueStats{}, map[Mode]*OpenWaits{}, map[string]bool{}, lie.Says)
		(&submission{task: &Task{}}).readReply(lie.Says)
		askAll(q)
	})
}

// askAll makes every call that reads a reply. Each call gets a reply, so none is repeated.
func askAll(q *Queue) {
	ctx := context.Background()
	Open(ctx, q.engine.Client(), Config{Logger: q.Logger(), Library: q.engine.Library(), Partitions: 1})
	q.Enqueue(ctx, Task{Kind: "k", ID: "0-a.b"})
	q.EnqueueAll(ctx, []Task{{Kind: "k", ID: "0-a.b"}, {Kind: "k", ID: "0-a.c"}})
	q.GetAll(ctx, []string{"0-a", "0-b"})
	q.CancelAll(ctx, []string{"0-a", "0-b"}, "")
	q.DeleteAll(ctx, []string{"0-a", "0-b"})
	q.Stats(ctx)
	q.look(ctx, 0, "0-a")
	reaper.Sweep(ctx, q, 0, "r", 1, time.Second)
}
