package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// Only a real Redis has a maxmemory. A full Redis refuses new tasks, but all existing tasks end.
func TestAFullRedisStillDrains(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	rdb, ctx := server.Client(t), context.Background()
	q := queuetest.Open(t, rdb, queue.Config{Library: testclock.Library(t, rdb), Events: "all"})
	full := func(bytes string) {
		t.Helper()
		// The scripts are flushed too: a worker that drains a full server can be new to it.
		if err := errors.Join(rdb.ConfigSet(ctx, "maxmemory", bytes).Err(), rdb.ScriptFlush(ctx).Err()); err != nil {
			t.Fatal(err)
		}
	}
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	task := func(line string) string {
		return queuetest.Enqueue(t, q, queue.Task{Queue: line, Timeout: time.Minute, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}}).ID
	}
	done, failing, lost := task("a"), task("b"), task("c")
	claims := []queue.Claim{w.Take(t, done, "a"), w.Take(t, failing, "b")}
	(&queuetest.Taker{Q: q, Worker: "dead"}).Take(t, lost, "c")
	ready, unwanted, late := task("d"), task("e"), task("f")

	full("1")
	before := redistest.Dump(t, rdb, "curfew:")
	r, err := q.Enqueue(ctx, queue.Task{Kind: "k"})
	if !errors.Is(err, refusal.ErrFull) || errors.Is(err, refusal.ErrUnknown) || !strings.Contains(err.Error(), "raise maxmemory or shorten retention") {
		t.Errorf("Enqueue = %+v, %v, want ErrFull and what to do", r, err)
	}
	receipts, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "k"}, {Kind: "k"}})
	if !errors.Is(err, refusal.ErrFull) || len(receipts) != 2 || !errors.Is(receipts[1].Err, refusal.ErrFull) {
		t.Errorf("EnqueueAll = %+v, %v, want ErrFull for both", receipts, err)
	}
	if after := redistest.Dump(t, rdb, "curfew:"); after != before {
		t.Errorf("a refused call changed something:\n%s", redistest.Diff(before, after))
	}

	queuetest.Open(t, rdb, queue.Config{Library: testclock.Library(t, rdb)})
	if stops, err := claim.Of(q).Heartbeat(ctx, 0, "w1", time.Hour, 0, []claim.Held{{ID: done, Epoch: 1}, {ID: failing, Epoch: 1, Progress: "half"}}); err != nil || len(stops) > 0 {
		t.Errorf("Heartbeat = %v, %v", stops, err)
	}
	w.Settle(t, queue.Outcome{ID: done, Epoch: claims[0].Epoch, Verb: queue.Complete, Result: []byte("result")})
	w.Settle(t, queue.Outcome{ID: failing, Epoch: claims[1].Epoch, Verb: queue.Fail, Error: "first"})
	again := w.Take(t, failing, "b")
	w.Settle(t, queue.Outcome{ID: failing, Epoch: again.Epoch, Verb: queue.Fail, Error: "second"})
	next := w.Take(t, ready, "d")
	w.Settle(t, queue.Outcome{ID: ready, Epoch: next.Epoch, Verb: queue.Release})
	if c, err := q.Cancel(ctx, unwanted, ""); err != nil || !c.Done {
		t.Errorf("Cancel = %+v, %v", c, err)
	}
	if got, err := q.Result(ctx, done); string(got) != "result" || err != nil {
		t.Errorf("Result = %q, %v", got, err)
	}

	full("0") // so that the test clock can be set
	testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(time.Minute+time.Millisecond))
	full("1")
	if swept, err := reaper.Sweep(ctx, q, 0, "r", 100, time.Second); err != nil || swept.TimedOut != 3 || len(swept.Errors) > 0 {
		t.Errorf("Sweep = %+v, %v, want 3 timed out", swept, err)
	}
	want := map[string]queue.Status{done: queue.Completed, failing: queue.Failed, lost: queue.Failed,
		ready: queue.Failed, unwanted: queue.Cancelled, late: queue.Failed}
	for id, status := range want {
		if r, err := q.Get(ctx, id); err != nil || r.Status != status {
			t.Errorf("Get = %+v, %v, want %s", r, err, status)
		}
	}
	if stats, err := q.Stats(ctx); err != nil || stats.Deadlines != 0 {
		t.Errorf("Stats = %+v, %v", stats, err)
	}

	full("0")
	queuetest.Enqueue(t, q, queue.Task{})
	if err := rdb.Del(ctx, q.Root(0)+":clock").Err(); err != nil { // the key of the test clock
		t.Fatal(err)
	}
	queuetest.Sound(t, q)
}

// A full Redis refuses new waits and stores nothing of them. Existing agents can still end: they
// can remember, get signals, and their waits are decided.
func TestAFullRedisStillWakesAgents(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	rdb, ctx := server.Client(t), context.Background()
	d := disturb(t, rdb, testclock.Library(t, rdb))
	disturbAgents(t, d)
	full := func(bytes string) {
		t.Helper()
		if err := errors.Join(rdb.ConfigSet(ctx, "maxmemory", bytes).Err(), rdb.ScriptFlush(ctx).Err()); err != nil {
			t.Fatal(err)
		}
	}
	status := func(id string) string { return d.field(id, "status") }

	full("1")
	before := d.dump(t)
	if _, err := claim.Of(d.q).Suspend(ctx, waiting("0-a1")); !errors.Is(err, refusal.ErrFull) || errors.Is(err, refusal.ErrUnknown) {
		t.Errorf("Suspend = %v, want ErrFull", err)
	}
	if after := d.dump(t); after != before {
		t.Errorf("a refused wait changed something:\n%s", redistest.Diff(before, after))
	}
	if err := claim.Of(d.q).Remember(ctx, "0-a1", 1, "w1", claim.Note{Checkpoint: &queue.Checkpoint{State: []byte("s")}}); err != nil {
		t.Errorf("Remember = %v", err)
	}
	if r, err := d.q.Signal(ctx, "0-a1", "go", []byte("x")); err != nil || !r.Done {
		t.Errorf("Signal = %+v, %v", r, err)
	}
	if r, err := claim.Of(d.q).Recall(ctx, "0-a1"); err != nil {
		t.Errorf("Recall = %+v, %v", r, err)
	}

	if _, err := d.q.Resolve(ctx, "0-a2.1", []byte("x")); err != nil || status("0-a2") != "PENDING" {
		t.Errorf("after the end of its last member (%v) the agent is %s, want PENDING", err, status("0-a2"))
	}
	held := d.w.Take(t, "0-a2", "agents")

	full("0") // so that the agent can wait again and the test clock can be set
	s := waiting("0-a2")
	s.Epoch, s.Wait.Entry, s.Children, s.Note = held.Epoch, 6, nil, claim.Note{}
	s.Wait.Members = s.Wait.Members[:1]
	if answer, err := claim.Of(d.q).Suspend(ctx, s); answer != nil || err != nil {
		t.Fatal(answer, err)
	}
	testclock.Set(t, rdb, d.q.Root(0), testclock.Start.Add(11*time.Second))
	full("1")
	if _, err := reaper.Sweep(ctx, d.q, 0, "r", 100, time.Second); err != nil || status("0-a2") != "PENDING" || status("0-a2.c") != "CANCELLED" {
		t.Errorf("after its limit (%v) the agent is %s and its member %s, want PENDING and CANCELLED", err, status("0-a2"), status("0-a2.c"))
	}
}
