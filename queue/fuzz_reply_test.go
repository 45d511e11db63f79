package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/reaper"
)

// FuzzReply checks that a reply that the scripts never give (from another version, a proxy or a
// faulty server) causes no panic. It gives an error, or the parts that can be read.
func FuzzReply(f *testing.F) {
	task := []any{int64(0), "payload", "kind", "k", "queue", "q", "status", "PENDING", "created_at", "1800000000000"}
	claim := []any{"0-a", "1", "q", "k", "p", "{}", "1800000000000", "", "", "0", "0", "0", "0"}
	for _, seed := range []any{
		nil, int64(0), int64(-1), "", "OK", 1.5, true, []any{}, []any{nil}, []any{[]any{}},
		errors.New("ERR"), map[any]any{"OK": int64(1)},
		[]any{"OK", int64(4), int64(1800000000000)}, []any{"OK", int64(0)}, []any{"OK", int64(-3)}, []any{"OK", int64(1 << 40)}, []any{"OK", "x"},
		[]any{"NEWER", "99"}, []any{"PARTITIONS", "4"},
		[]any{[]any{"OK", "0-a", "1800000000000"}}, []any{[]any{"KNOWN", "0-a", ""}}, []any{[]any{"CONFLICT", "0-a"}}, []any{[]any{"OWNER", "0-a", ""}},
		[]any{[]any{"INVALID", "queue", "why"}}, []any{[]any{"BROKEN", "0-a", "why"}}, []any{[]any{"OK"}},
		[]any{[]any{"CANCELLED"}}, []any{[]any{"ALREADY", "COMPLETED", "result"}}, []any{[]any{"ALREADY"}}, []any{[]any{"MISSING"}},
		[]any{int64(1800000000000), task}, []any{int64(1), task[:3]}, []any{int64(1), []any{}},
		[]any{int64(1), []any{int64(1), claim}}, []any{int64(1), []any{int64(0), claim[:5]}}, []any{int64(1), []any{}},
		[]any{int64(1), []any{[]any{"OK", "COMPLETED"}}, []any{int64(1), claim}}, []any{int64(1), []any{[]any{}}, []any{int64(0)}},
		[]any{int64(1), []any{"0-a", int64(1), "timeout"}}, []any{int64(1), []any{"0-a"}},
		[]any{int64(1), []any{"PENDING", "9007199254740992"}}, []any{int64(1), []any{"", ""}}, []any{int64(1), []any{"BROKEN", ""}},
		[]any{int64(1), int64(500), int64(1), []any{"timed_out", int64(3)}, "0-a: :12: error"}, []any{int64(1), int64(-1 << 62), nil, []any{"removed"}},
		[]any{int64(1), []any{"deadlines", int64(3)}, []any{"q", "ready", int64(1), "running", "2"}}, []any{int64(1), []any{"deadlines"}, []any{}},
	} {
		f.Add(encode(nil, seed), encode(nil, seed))
	}
	rdb := redistest.Embedded(f).Client()
	q, err := Open(context.Background(), rdb, Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	lie := &liar{}
	rdb.AddHook(lie)
	f.Fuzz(func(t *testing.T, data, more []byte) {
		var other any
		lie.says, _ = decode(data, 0)
		other, _ = decode(more, 0)

		engine.Text(lie.says)
		engine.Number(lie.says)
		engine.Instant(lie.says)
		ReadRecord("0-a", lie.says)
		readCancellation(lie.says)
		readVerdicts(lie.says, 1)
		readCounts(lie.says, 0)
		readCounts(lie.says, 1)
		addQueue(map[string]*QueueStats{}, map[Mode]*OpenWaits{}, map[string]bool{}, lie.says)
		(&Reply{}).readClaims(0, other, lie.says)
		(&submission{task: &Task{}}).readReply(lie.says)
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
	q.Attempts().Fetch(ctx, 0, "w", Ask{N: 1, Seq: 1, Lease: time.Second})
	q.Attempts().Settle(ctx, 0, "w", "call", []Outcome{{ID: "0-a", Verb: Complete}}, Ask{})
	q.Attempts().Heartbeat(ctx, 0, "w", time.Second, 0, nil)
	reaper.Sweep(ctx, q, 0, "r", 1, time.Second)
}

// liar replies to every script with one value.
type liar struct{ says any }

func (*liar) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*liar) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *liar) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if script, ok := cmd.(interface{ SetVal(any) }); ok && lua.IsVerb(cmd.Name()) {
			script.SetVal(l.says)
			return nil
		}
		return next(ctx, cmd)
	}
}

// encode and decode convert a reply to bytes and back. All bytes can be decoded.
func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 1), uint64(v))
	case string:
		return append(append(b, 2, byte(len(v))), v...)
	case []any:
		b = append(b, 3, byte(len(v)))
		for _, e := range v {
			b = encode(b, e)
		}
		return b
	case float64:
		return append(b, 4)
	case bool:
		return append(b, 5)
	case error:
		return append(b, 6)
	case map[any]any:
		return append(b, 7)
	}
	return append(b, 0)
}

func decode(b []byte, depth int) (any, []byte) {
	if len(b) == 0 || depth > 6 {
		return nil, nil
	}
	kind, b := b[0], b[1:]
	switch kind % 8 {
	case 1:
		var n [8]byte
		b = b[copy(n[:], b):]
		return int64(binary.BigEndian.Uint64(n[:])), b
	case 2, 3:
		if len(b) == 0 {
			return "", nil
		}
		n := int(b[0])
		b = b[1:]
		if kind%8 == 2 {
			n = min(n, len(b))
			return string(b[:n]), b[n:]
		}
		all := []any{}
		for i := 0; i < n && len(b) > 0; i++ {
			var e any
			e, b = decode(b, depth+1)
			all = append(all, e)
		}
		return all, b
	case 4:
		return 1.5, b
	case 5:
		return true, b
	case 6:
		return errors.New("ERR"), b
	case 7:
		return map[any]any{"OK": int64(1)}, b
	}
	return nil, b
}
