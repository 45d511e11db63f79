package bounds

import (
	"context"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// An audit and an export of 2,000,000 tasks need little memory.
func TestAnAuditAndAnExportOfManyTasksNeedLittleMemory(t *testing.T) {
	if !harness.Long() {
		t.Skip("CURFEW_LONG is not 1: this test enqueues 2,000,000 tasks")
	}
	redistest.NoRace(t, "it measures memory, and the detector needs more")
	const n = 2_000_000
	q := queuetest.Open(t, redistest.Start(t).Client(t), queue.Config{})
	for range n / 10_000 {
		receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, 10_000))
		if err != nil || receipts[0].Err != nil {
			t.Fatal(err, receipts[0].Err)
		}
	}
	for name, run := range map[string]func(ctx context.Context) error{
		"audit": func(ctx context.Context) error {
			found, err := inspect.Audit(ctx, q)
			if len(found) > 0 {
				t.Errorf("Audit returns %d findings, the first is %v", len(found), found[0])
			}
			return err
		},
		"export": func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) },
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			if err := run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d MiB of memory", m.Sys>>20)
			if m.Sys > n*400 {
				t.Errorf("the process uses %d bytes of memory per task, want at most 400", m.Sys/n)
			}
		})
	}
}
