package races

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// What takes a sweep a piece must not take a rest a piece.
func TestDrainingIsQuick(t *testing.T) {
	redistest.NoRace(t, "the detector stretches what it measures")
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
	// The children end before their owners, as they should: nothing is left to end.
	for i := len(claims) - 1; i >= 0; i-- {
		if _, err := s.Q.Attempts().Settle(s.Context(), 0, "w", queue.NewCall(), []queue.Outcome{{ID: claims[i].ID, Epoch: claims[i].Epoch, Verb: queue.Complete}}, queue.Ask{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.zcard("draining"); n != owners {
		t.Fatalf("%d are draining, want %d", n, owners)
	}
	var sweeps atomic.Int64
	start := time.Now()
	s.Reap(reaper.Config{Observe: func(int, reaper.Swept) { sweeps.Add(1) }})
	await.Until(t, "they are drained", func() bool { return s.zcard("draining") == 0 })
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("%d owners whose children had ended took %v and %d sweeps to drain, want well under 3s", owners, took, sweeps.Load())
	}
	s.account(ids)
}
