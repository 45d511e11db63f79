package bounds

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// All entries of ready:default and of deadlines are lost. No command of the repair is large.
func TestNoCommandOfARepairIsLarge(t *testing.T) {
	redistest.NoRace(t, "its calls are made one after the other")
	n := harness.Times(many/2, many/2, 100_000) // tasks, each with two findings
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, n))
	if err != nil || receipts[0].Err != nil {
		t.Fatal(err, receipts[0].Err)
	}
	rdb.Del(t.Context(), q.Root(0)+":ready:default", q.Root(0)+":deadlines")
	rdb.ZAdd(t.Context(), q.Root(0)+":limits", redis.Z{Score: 1, Member: "0-nobody"})
	found, err := inspect.Audit(t.Context(), q)
	if err != nil || len(found) != 2*n+1 {
		t.Fatalf("Audit returns %d findings, %v, want %d", len(found), err, 2*n+1)
	}
	s := &sizes{}
	rdb.AddHook(s)
	if _, err := inspect.Repair(t.Context(), q, found); err != nil {
		t.Fatal(err)
	}
	s.small(t)
	if left, err := inspect.Audit(t.Context(), q); err != nil || len(left) > 0 {
		t.Errorf("after the repair Audit returns %d findings, %v", len(left), err)
	}
}
