package bounds

import (
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// 300,000 tasks are due in the same millisecond, and their records are removed after the shortest retention.
func TestManyTasksDueAtOnceEndAndGo(t *testing.T) {
	if !harness.Long() {
		t.Skip("CURFEW_LONG is not 1: this test enqueues 300,000 tasks, and waits for a minute")
	}
	redistest.NoRace(t, "it counts what Redis does")
	const n, chunk = 300_000, 5000
	s := harness.New(t, redistest.Start(t).Addr, queue.Config{})
	deadline := time.Now().Add(30 * time.Second).Truncate(time.Millisecond)
	for range n / chunk {
		s.Enqueue(slices.Repeat([]queue.Task{{Kind: "k", Deadline: deadline, Retention: time.Second}}, chunk)...) // a minute is the minimum
	}
	did, all := reaper.Swept{}, make(chan string, 2)
	defer s.Reap(reaper.Config{Observe: func(_ int, swept reaper.Swept) {
		before := did
		did.TimedOut += swept.TimedOut
		did.Removed += swept.Removed
		if before.TimedOut < n && did.TimedOut >= n {
			all <- "ended"
		}
		if before.Removed < n && did.Removed >= n {
			all <- "removed"
		}
	}})()
	await.Receive(t, all, "all tasks have ended")
	await.Receive(t, all, "all records are removed")
	if left := s.Redis.DBSize(t.Context()).Val(); left > 20 {
		t.Errorf("%d keys are left, want at most 20", left)
	}
	queuetest.Sound(t, s.Q)
}
