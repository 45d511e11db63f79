package timing_test

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// busy is a script that takes about ten times as much CPU time as timing.Work.
const busy = "local n = 0; for i = 1, 5000000 do n = n + i % 7 end; return n"

// No command of an operator keeps Redis busy for longer than three times the reference, which is 20 ms on a processor of 3 GHz.
func TestNoCommandOfAnOperatorIsLong(t *testing.T) {
	const n = 10_000
	server := redistest.Start(t)
	alone, rdb := server.Client(t), server.Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, n))
	if err != nil || receipts[0].Err != nil {
		t.Fatal(err, receipts[0].Err)
	}
	meter := redistest.NewMeter(t, alone, nil)
	rdb.AddHook(meter)
	for _, test := range []struct {
		name string
		run  func(ctx context.Context) error
	}{
		{"an audit", func(ctx context.Context) error { _, err := inspect.Audit(ctx, q); return err }},
		{"an export", func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) }},
		{"a list of none", func(ctx context.Context) error {
			_, err := inspect.List(ctx, q, inspect.Filter{Kind: "none"}, "", 100)
			return err
		}},
		{"a repair", func(ctx context.Context) error {
			alone.Del(ctx, q.Root(0)+":ready:default", q.Root(0)+":deadlines")
			found, err := inspect.Audit(ctx, q)
			if err == nil && len(found) != 2*n {
				t.Errorf("Audit returns %d findings, want %d", len(found), 2*n)
			}
			meter.Empty()
			if err == nil {
				_, err = inspect.Repair(ctx, q, found)
			}
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			timing.Compare(t, mostWork, timing.Work(t, alone), func(planted bool) (most time.Duration) {
				meter.Empty()
				if err := test.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if planted {
					rdb.Eval(t.Context(), busy, nil)
				}
				for _, took := range meter.Empty() {
					most = max(most, took)
				}
				return most
			})
		})
	}
}

// Of tasks that are due in the same millisecond, 50 end in half of the time of the reference: 65 µs each on a processor of 3 GHz.
func TestAnEndCostsRedisLittleTime(t *testing.T) {
	const n = 5000
	server := redistest.Start(t)
	alone := server.Client(t)
	timing.Compare(t, 0.5, timing.Work(t, alone), func(planted bool) time.Duration {
		s := harness.New(t, server.Addr, queue.Config{})
		crowd(s, n)
		var ended atomic.Int64
		over := make(chan struct{})
		took := timing.CPU(t, alone, func() {
			defer s.Reap(reaper.Config{Observe: func(_ int, swept reaper.Swept) {
				if planted {
					alone.Eval(context.Background(), busy, nil)
				}
				if before := ended.Add(int64(swept.TimedOut)) - int64(swept.TimedOut); before < n && ended.Load() >= n {
					close(over)
				}
			}})()
			await.Receive(t, over, "all have ended")
		})
		return took / (n / 50)
	})
}
