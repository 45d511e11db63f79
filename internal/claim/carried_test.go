package claim_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The results and the claims of a call have at most 4 MiB together, but a call always claims one
// task. The next call claims the tasks that did not fit.
func TestACallCarriesFourMebibytesInBothDirections(t *testing.T) {
	ctx, payload := context.Background(), bytes.Repeat([]byte("p"), 900_000)
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	var tasks []queue.Task
	for range 12 {
		tasks = append(tasks, queue.Task{Kind: "k", Payload: payload})
	}
	if _, err := q.EnqueueAll(ctx, tasks); err != nil {
		t.Fatal(err)
	}
	ask := claim.Ask{N: 10, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 10}}}
	var held []queue.Claim
	for i, row := range []struct {
		claim          string
		settled, bytes int // outcomes, and the bytes of each
		takes          int
	}{
		{"no outcomes", 0, 0, 4},
		{"small outcomes", 2, 1000, 4},
		{"outcomes of 1.8 MB", 2, 900_000, 2},
		{"outcomes of 3.6 MB", 4, 900_000, 1},
		{"no outcomes, and one task is left", 0, 0, 1},
	} {
		var outcomes []queue.Outcome
		for _, c := range held[:row.settled] {
			outcomes = append(outcomes, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: payload[:row.bytes]})
		}
		held = held[row.settled:]
		ask.Seq = int64(i + 1)
		trip, err := claim.Of(q).Settle(ctx, 0, "w", queue.NewCall(), outcomes, ask)
		if err != nil || len(trip.Claims) != row.takes || len(trip.Verdicts) != row.settled {
			t.Fatalf("%s: %d claims and %v, %v, want %d", row.claim, len(trip.Claims), trip.Verdicts, err, row.takes)
		}
		held = append(held, trip.Claims...)
	}
}
