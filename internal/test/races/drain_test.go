package races

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Work that needs many sweeps must not wait for the fall-back between them, which is an hour here.
func TestDrainingDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	const owners = 200
	var tasks []queue.Task
	for range owners {
		tasks = append(tasks, queue.Task{Kind: "owner"})
	}
	ids := s.Enqueue(tasks...)
	var children []queue.Task
	for _, id := range ids {
		children = append(children, queue.Task{Kind: "child", ID: id + ".1"})
	}
	ids = append(ids, s.Enqueue(children...)...)
	claims := s.fetch("w", 1, 2*owners, time.Minute)
	// The children end before their owners, so the drain has no task to end.
	for i := len(claims) - 1; i >= 0; i-- {
		if _, err := claim.Of(s.Q).Settle(s.Context(), 0, "w", queue.NewCall(), []queue.Outcome{{ID: claims[i].ID, Epoch: claims[i].Epoch, Verb: queue.Complete}}, claim.Ask{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.zcard("draining"); n != owners {
		t.Fatalf("%d owners are draining, want %d", n, owners)
	}
	s.Reap(reaper.Config{Fallback: time.Hour})
	await.Until(t, "no owner is draining", func() bool { return s.zcard("draining") == 0 })
	s.account(ids)
}
