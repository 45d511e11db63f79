package bounds

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

// All entries of ready:default and of deadlines are lost. No command of the repair keeps Redis busy for long.
func TestNoCommandOfARepairIsLong(t *testing.T) {
	redistest.NoRace(t, "its calls are made one after the other")
	n := stages.Times(10_000, 20_000, 100_000)
	server := redistest.Start(t)
	rdb := server.Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	for range n / 10_000 {
		receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, 10_000))
		if err != nil || receipts[0].Err != nil {
			t.Fatal(err, receipts[0].Err)
		}
	}
	rdb.Del(t.Context(), q.Root(0)+":ready:default", q.Root(0)+":deadlines")
	rdb.ZAdd(t.Context(), q.Root(0)+":limits", redis.Z{Score: 1, Member: "0-nobody"})
	found, err := inspect.Audit(t.Context(), q)
	if err != nil || len(found) != 2*n+1 {
		t.Fatalf("Audit returns %d findings, %v, want %d", len(found), err, 2*n+1)
	}
	meter := newMeter(t, server, rdb)
	begun := time.Now()
	if _, err := inspect.Repair(t.Context(), q, found); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	meter.short(t)
	t.Logf("repaired %d findings in %v", len(found), took)
	if left, err := inspect.Audit(t.Context(), q); err != nil || len(left) > 0 {
		t.Errorf("after the repair Audit returns %d findings, %v", len(left), err)
	}
}
