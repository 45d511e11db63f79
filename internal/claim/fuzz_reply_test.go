package claim

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// FuzzReply checks that a reply that the scripts never give (from another version, a proxy or a
// faulty server) causes no panic. It gives an error, or the parts that can be read.
func FuzzReply(f *testing.F) {
	spec := "k q 1800000000000 - -\nheaders=[1]\npriority=x\nretry_expression:9\n\ntruepayload"
	claim := func(state, spec string) []any { return []any{int64(1), "0-a", int64(1), state, spec, "p"} }
	wait := "wait satisfied - 1800000000000 digest\nlabel\na b\na"
	for _, seed := range []any{
		nil, int64(0), int64(-1), "", "OK", 1.5, true, []any{}, []any{nil}, []any{[]any{}}, errors.New("ERR"), map[any]any{"OK": int64(1)},
		[]any{int64(1), claim("- - - -", spec)}, []any{int64(1), claim("1 2 3 1", "k q 1 2 3\n\np")}, []any{int64(1), claim("1 2", "k")},
		[]any{int64(1), claim("- - - -", spec)[:4]}, []any{int64(1), []any{int64(-2)}}, []any{int64(1), []any{}}, []any{int64(1), []any{"x"}, "0-a: :12: error"},
		[]any{int64(1), []any{"COMPLETED"}, claim("- - - -", spec)}, []any{int64(1), []any{[]any{"LOST"}}, []any{int64(0)}},
		[]any{int64(1), []any{[]any{}}, []any{int64(0)}}, []any{int64(1), []any{[]any{"INVALID", "result", "why"}}, []any{int64(0)}},
		[]any{int64(1), int64(3), []any{"0-a", int64(1), "timeout"}}, []any{int64(1), int64(-1 << 62), []any{"0-a"}},
		[]any{int64(1), "READY", wait}, []any{int64(1), "READY", "wait"}, []any{int64(1), "WAITING"}, []any{int64(1), "DIVERGED"},
		[]any{int64(1), "CHILD", int64(1), "CONFLICT", "0-a"}, []any{int64(1), "CHILD", int64(2)}, []any{"CHILD"}, []any{"LOST", "RUNNING"},
		[]any{int64(1), []any{"1", wait, "state", "s"}, []any{"b", int64(1), "status", "COMPLETED"}, []any{"b"}}, []any{int64(1), []any{"1"}, []any{}},
	} {
		f.Add(wire.Encode(nil, seed), wire.Encode(nil, seed))
	}
	rdb := redistest.Embedded(f).Client()
	q, err := queue.Open(context.Background(), rdb, queue.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	lie := &wire.Liar{}
	rdb.AddHook(lie)
	f.Fuzz(func(t *testing.T, data, more []byte) {
		lie.Says, _ = wire.Decode(data, 0)
		now, _ := wire.Decode(more, 0)
		readVerdicts(lie.Says, 1)
		readMemory(&queue.Memory{Journal: map[int64]string{}}, lie.Says)
		(&Reply{}).readClaims(0, now, lie.Says)
		askAll(Of(q))
	})
}

// askAll makes every call that reads a reply. Each call gets a reply, so none is repeated.
func askAll(a Attempts) {
	ctx := context.Background()
	ask := Ask{N: 1, Seq: 1, Lease: time.Second}
	a.Fetch(ctx, 0, "w", ask)
	a.Settle(ctx, 0, "w", "call", []queue.Outcome{{ID: "0-a", Verb: queue.Complete}}, ask)
	a.Heartbeat(ctx, 0, "w", time.Second, 0, nil)
	a.Describe(ctx, 0, "w", queue.WorkerRunning, "")
	a.Remember(ctx, "0-a", 1, "w", Note{})
	a.Recall(ctx, "0-a")
	a.Children(ctx, "0-a", []string{"b"})
	a.Suspend(ctx, Suspension{Agent: "0-a", Epoch: 1, Worker: "w", Children: []queue.Task{{Kind: "k", ID: "0-a.b"}}})
}
