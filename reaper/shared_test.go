package reaper_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Two calls of RunShared have one reaper. It sweeps until both have returned, and leaves nothing behind.
func TestRunSharedRunsOneReaper(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := open(t, rdb, 1)
	before := goleak.IgnoreCurrent()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{}, 1)
		go func() { reaper.RunShared(ctx, q, quiet); ended <- struct{}{} }()
		return func() { cancel(); await.Receive(t, ended, "RunShared returns") }
	}
	holder := func() string { return rdb.HGet(t.Context(), q.Root(0), "turn_of").Val() }
	sweeps := func(what string) {
		t.Helper()
		id := enqueue(t, q, queue.Task{Kind: "k", Timeout: 10 * time.Millisecond})[0]
		await.Until(t, what, func() bool { return record(t, q, id).Status == queue.Failed })
	}
	stopFirst := start()
	sweeps("the reaper of the first call sweeps")
	name := holder()
	stopSecond := start()
	await.Until(t, "the second call shares the reaper", func() bool { return reaper.SharedUsers(q) == 2 })
	stopFirst()
	for range 3 { // a reaper of its own would take the turn when it is free, a second after the last sweep
		sweeps("the reaper sweeps for the second call")
		time.Sleep(500 * time.Millisecond) // sleeps: the turn must be free in between
	}
	if got := holder(); got != name || name == "" {
		t.Errorf("after the first call has returned %q has the turn, want %q", got, name)
	}
	stopSecond()
	goleak.VerifyNone(t, before)
	stopThird := start()
	await.Until(t, "another reaper has the turn", func() bool { return holder() != name })
	stopThird()
}

// Alarms calls ring when it has subscribed, when something is due earlier than the next sweep, and after a
// broken connection.
func TestAlarmsRing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	q := open(t, rdb, 1)
	if s, err := reaper.Sweep(t.Context(), q, 0, "r", 100, 10*time.Second); err != nil || !s.Turn {
		t.Fatalf("Sweep = %+v, %v, want the turn", s, err)
	}
	rings := make(chan struct{}, 100)
	end := reaper.Alarms(q, 0, func() { rings <- struct{}{} })
	defer end()
	await.Receive(t, rings, "a ring when it has subscribed")
	enqueue(t, q, queue.Task{Kind: "k", Timeout: 100 * time.Millisecond})
	await.Receive(t, rings, "a ring for an earlier deadline")
	if err := rdb.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	await.Receive(t, rings, "a ring after the connection broke")
}
