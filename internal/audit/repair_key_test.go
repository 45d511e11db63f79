package audit

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Two live tasks have one idempotency key, since its entry was lost between them. A repair gives the key to one of
// them, and leaves the other one.
func TestOneOfTwoTasksGetsTheKey(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", IdempotencyKey: "key"}); err != nil {
				t.Fatal(err)
			}
			if err := rdb.Del(t.Context(), q.Root(0)+":idem").Err(); err != nil {
				t.Fatal(err)
			}
		}
		remedies, left := repaired(t, q)
		if len(remedies) != 2 || remedies[0].Left != "" || !strings.Contains(remedies[1].Left, "has the same idempotency key") {
			t.Errorf("Repair does %+v, want that it leaves the second", remedies)
		}
		if len(left) != 1 {
			t.Errorf("an audit finds %v, want one task without its key", left)
		}
	})
}
