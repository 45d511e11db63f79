package bounds

import (
	"context"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

// An audit and an export of very many tasks do not delay other clients: no command keeps Redis busy for long. Without
// CURFEW_LONG there are few tasks, and the limits of memory and of time do not count.
func TestAnAuditAndAnExportOfManyTasksHoldNobodyUp(t *testing.T) {
	redistest.NoRace(t, "it measures memory, and the detector needs more")
	n := stages.Times(10_000, 20_000, 2_000_000)
	server := redistest.Start(t)
	rdb := server.Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	for range n / 10_000 {
		receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, 10_000))
		if err != nil || receipts[0].Err != nil {
			t.Fatal(err, receipts[0].Err)
		}
	}
	meter := newMeter(t, server, rdb)
	for _, test := range []struct {
		name string
		most time.Duration // for 2,000,000 tasks
		run  func(ctx context.Context) error
	}{
		{"audit", 5 * time.Minute, func(ctx context.Context) error {
			found, err := inspect.Audit(ctx, q)
			if len(found) > 0 {
				t.Errorf("Audit returns %d findings, the first is %v", len(found), found[0])
			}
			return err
		}},
		{"export", 90 * time.Second, func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			runtime.GC()
			begun := time.Now()
			if err := test.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Since(begun)
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d tasks in %v; %d MiB of memory", n, took, m.Sys>>20)
			meter.short(t)
			if stages.Long() && took > test.most {
				t.Errorf("the %s took %v, want at most %v on a machine that does nothing else", test.name, took, test.most)
			}
			if stages.Long() && m.Sys > uint64(n)*400 {
				t.Errorf("the process uses %d bytes of memory per task, want at most 400", m.Sys/uint64(n))
			}
		})
	}
}
