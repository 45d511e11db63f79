package misuse

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The rights of a worker and of a reader together are enough to repair a namespace.
func TestTheRightsToRepair(t *testing.T) {
	admin := redistest.Start(t).Client(t)
	whole, err := openAs(admin, queue.AccessAll, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	kept := must[queue.Receipt](t)(whole.Enqueue(ctx, queue.Task{Kind: "k", Timeout: time.Hour, IdempotencyKey: "key"})).ID
	child := must[queue.Receipt](t)(whole.Enqueue(ctx, queue.Task{Kind: "k", ID: kept + ".c"})).ID
	must[claim.Reply](t)(claim.Of(whole).Fetch(ctx, 0, "w", claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 1}}}))
	if _, err := whole.Pause(ctx, "quiet"); err != nil {
		t.Fatal(err)
	}
	root := whole.Root(0)
	for _, key := range []string{":ready:default", ":deadlines", ":claims:w", ":idem", ":queues", ":children:" + kept} {
		admin.Del(ctx, root+key)
	}
	admin.HDel(ctx, root, "controlled")
	admin.HSet(ctx, root+":queue:default", "running", 7)
	admin.ZAdd(ctx, root+":limits", redis.Z{Score: 5, Member: child})
	q, err := openAs(user(t, admin, "operator", slices.Concat(rules(t, "reader"), rules(t, "worker"))...), queue.AccessAll, quiet)
	if err != nil {
		t.Fatal(err)
	}
	found := must[[]inspect.Finding](t)(inspect.Audit(ctx, q))
	if len(found) < 8 {
		t.Errorf("Audit returns %v: the test shows little", found)
	}
	must[[]inspect.Remedy](t)(inspect.Repair(ctx, q, found))
	// Counters of a queue that was not listed are seen only now.
	must[[]inspect.Remedy](t)(inspect.Repair(ctx, q, must[[]inspect.Finding](t)(inspect.Audit(ctx, q))))
	if left := must[[]inspect.Finding](t)(inspect.Audit(ctx, whole)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A finding of another namespace can name a partition that this one does not have.
func TestARepairOfAnUnknownPartitionIsRefused(t *testing.T) {
	q, err := queue.Open(t.Context(), redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, partition := range []int{-1, 1, 99} {
		if _, err := inspect.PlanRepair(t.Context(), q, []inspect.Finding{{Partition: partition}}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("partition %d: %v, want ErrInvalid", partition, err)
		}
	}
}
