package bounds

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const (
	// many is the number of tasks, of children and of kinds: more than one command may name.
	many = 9000
	// mostElements is the maximum number of elements in a command or reply: 500 tasks of 14 words each, and room.
	mostElements = 8000
	// mostBytes is the approximate maximum size of a command or reply.
	mostBytes = 5 << 20
)

// crowded fills a namespace with many tasks with idempotency keys in one line, many queues, many kinds, and an agent
// that waits for many children.
func crowded(t *testing.T, q *queue.Queue) (agent string, members, ids []string) {
	t.Helper()
	ctx := t.Context()
	enqueue := func(n int, task func(i int) queue.Task) (ids []string) {
		t.Helper()
		tasks := make([]queue.Task, n)
		for i := range tasks {
			tasks[i] = task(i)
		}
		receipts, err := q.EnqueueAll(ctx, tasks)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range receipts {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			ids = append(ids, r.ID)
		}
		return ids
	}
	taker := queuetest.Taker{Q: q, Worker: "w"}
	held := taker.Take(t, queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID, "agents")
	suspended := claim.Suspension{Agent: held.ID, Epoch: held.Epoch, Worker: "w",
		Wait: claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAll, Limit: time.Hour}}
	members = enqueue(many, func(i int) queue.Task {
		return queue.Task{ID: held.ID + "." + strconv.Itoa(i), Kind: "child", Promise: true}
	})
	for _, id := range members {
		suspended.Wait.Members = append(suspended.Wait.Members, claim.Member{ID: id, Patience: time.Minute})
	}
	if _, err := claim.Of(q).Suspend(ctx, suspended); err != nil {
		t.Fatal(err)
	}
	ended := enqueue(1100, func(i int) queue.Task {
		return queue.Task{Kind: fmt.Sprint("kind", i), Queue: fmt.Sprint("queue", i)}
	})
	if _, err := q.CancelAll(ctx, ended, ""); err != nil {
		t.Fatal(err)
	}
	pipe := q.Client().Pipeline()
	for i := range many {
		pipe.HSet(ctx, q.Root(0), fmt.Sprint("kind:k", i), "timeout_ms=1000")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	return held.ID, members, enqueue(many, func(i int) queue.Task {
		return queue.Task{Kind: "k", Timeout: time.Hour, IdempotencyKey: fmt.Sprint("key", i)}
	})
}

// Each command that an operator's call sends is about some 500 tasks at most, however large the namespace is.
func TestNoCommandOfAnOperatorIsLarge(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	agent, members, ids := crowded(t, q)
	for _, call := range []struct {
		name string
		make func(ctx context.Context) error
	}{
		{"Audit", func(ctx context.Context) error {
			found, err := inspect.Audit(ctx, q)
			if len(found) > 0 {
				t.Errorf("Audit returns %d findings, the first is %v", len(found), found[0])
			}
			return err
		}},
		{"ExportTo", func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) }},
		{"Export", func(ctx context.Context) error { _, err := inspect.Export(ctx, q, "", 500); return err }},
		{"List", func(ctx context.Context) error {
			return inspect.Each(ctx, q, inspect.Filter{}, func(inspect.ListPage) error { return nil })
		}},
		{"List of an owner", func(ctx context.Context) error {
			_, err := inspect.List(ctx, q, inspect.Filter{Owner: agent}, "", 1000)
			return err
		}},
		{"OldestWaiting", func(ctx context.Context) error { _, err := inspect.OldestWaiting(ctx, q); return err }},
		{"Figures", func(ctx context.Context) error {
			figures, err := inspect.Figures(ctx, q)
			if n := len(slices.CompactFunc(figures, func(a, b inspect.KindFigures) bool { return a.Kind == b.Kind })); n != 1001 {
				t.Errorf("there are figures of %d kinds, want 1,000 and one for all others", n)
			}
			return err
		}},
		{"Explain a task", func(ctx context.Context) error { _, err := inspect.Explain(ctx, q, ids[0]); return err }},
		{"Explain an agent", func(ctx context.Context) error { _, err := inspect.Explain(ctx, q, agent); return err }},
		{"Stats", func(ctx context.Context) error { _, err := q.Stats(ctx); return err }},
		{"Kinds", func(ctx context.Context) error { _, err := q.Kinds(ctx); return err }},
		{"GetAll", func(ctx context.Context) error { _, err := q.GetAll(ctx, ids[:5000]); return err }},
		{"Recall", func(ctx context.Context) error { _, err := claim.Of(q).Recall(ctx, agent); return err }},
		{"Children", func(ctx context.Context) error { _, err := claim.Of(q).Children(ctx, agent, members); return err }},
		{"Pause", func(ctx context.Context) error { _, err := q.Pause(ctx, "queue1"); return err }},
		{"Resume", func(ctx context.Context) error { _, err := q.Resume(ctx, "queue1"); return err }},
		{"LimitRunning", func(ctx context.Context) error { _, err := q.LimitRunning(ctx, "queue1", 5); return err }},
		{"CancelAll", func(ctx context.Context) error { _, err := q.CancelAll(ctx, ids[:5000], ""); return err }},
		{"DeleteAll", func(ctx context.Context) error { _, err := q.DeleteAll(ctx, ids[:5000]); return err }},
		{"Cancel an agent", func(ctx context.Context) error { _, err := q.Cancel(ctx, agent, ""); return err }},
		{"Drain", func(ctx context.Context) error { _, err := q.Drain(ctx, "default", ""); return err }},
		{"events.Read", func(ctx context.Context) error { return readAllEvents(ctx, q) }},
		{"Open", func(ctx context.Context) error {
			_, err := queue.Open(ctx, rdb, queue.Config{Logger: q.Logger()})
			return err
		}},
	} {
		t.Run(call.name, func(t *testing.T) {
			s := &sizes{}
			rdb.AddHook(s) // earlier hooks cannot be removed, but their results are not read again
			if err := call.make(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.small(t)
		})
	}
}

func readAllEvents(ctx context.Context, q *queue.Queue) error {
	for at := events.Oldest; ; {
		batch, err := events.Read(ctx, q, at, 10_000, 0)
		if err != nil || len(batch.Events) == 0 {
			return err
		}
		at = batch.Next
	}
}

// A reply is measured alike in every form that the client gives it.
func TestMeasureCountsAllElements(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	s := &sizes{}
	rdb.AddHook(s)
	key := redistest.Namespace(t) + ":z"
	for i := range 7 {
		rdb.ZAdd(t.Context(), key, redis.Z{Score: float64(i), Member: i})
	}
	for _, ask := range []func() error{
		func() error { return rdb.ZRangeWithScores(t.Context(), key, 0, -1).Err() },
		func() error { return rdb.Do(t.Context(), "zrange", key, 0, -1, "withscores").Err() },
		func() error { return rdb.ZScan(t.Context(), key, 0, "", 10).Err() },
	} {
		s.replied = size{}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if s.replied.elements < 14 {
			t.Errorf("a reply of 7 members and 7 scores is measured as %+v", s.replied)
		}
	}
}
