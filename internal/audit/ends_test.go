package audit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// An agent waits for the next end, and the end was lost. The repair gives it back, and its wait hands over the end. Ends
// that it was given before are not handed over again.
func TestALostEndIsHandedOverAfterARepair(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q, ctx := furnished(t, rdb), context.Background()
		do(t, q, []string{"DEL {r}:ends:0-g"})
		suspend := func(epoch int64) *queue.WaitOutcome {
			t.Helper()
			w := claim.Wait{Entry: 3, Digest: "d", Mode: queue.WaitCollect}
			answer, err := claim.Of(q).Suspend(ctx, claim.Suspension{Agent: "0-g", Epoch: epoch, Worker: "w1", Wait: w})
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if got := suspend(1); got != nil {
			t.Fatalf("the wait is over with %v, though the end is lost", got)
		}
		remedies, left := repaired(t, q)
		if len(left) > 0 || len(remedies) != 1 || !strings.Contains(strings.Join(remedies[0].Does, ", "), "add 2 to ends:0-g, give the agent back") {
			t.Fatalf("Repair does %v and leaves %v", remedies, left)
		}
		trip, err := claim.Of(q).Fetch(ctx, 0, "w1", claim.Ask{N: 1, Seq: 99, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "q0-g", N: 1}}})
		if err != nil || len(trip.Claims) != 1 {
			t.Fatal(trip.Claims, err)
		}
		if got := suspend(trip.Claims[0].Epoch); got == nil || !slices.Equal(got.Settled, []string{"2"}) {
			t.Errorf("after the repair the wait returns %+v, want the end of 2", got)
		}
	})
}
