package bounds

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Up to 300,000 tasks are due in the same millisecond, and their records are removed after the shortest
// retention. Each costs Redis little CPU time.
func TestManyTasksDueAtOnceEndAndGo(t *testing.T) {
	redistest.NoRace(t, "it measures Redis")
	n := stages.Times(5_000, 20_000, 300_000)
	s := stages.New(t, redistest.Start(t).Addr, queue.Config{})
	const chunk = 5000
	deadline := time.Now().Add(2*time.Second + time.Duration(n)*50*time.Microsecond).Truncate(time.Millisecond)
	for range n / chunk {
		tasks := make([]queue.Task, chunk)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Deadline: deadline, Retention: time.Second} // a minute is the minimum
		}
		receipts, err := s.Q.EnqueueAll(t.Context(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range receipts {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	before := used(s)
	ends := worked(s, n, func(s reaper.Swept) int { return s.TimedOut })
	limit := redistest.Paced(t, s.Redis, 120*time.Microsecond)
	each := (ends - before) / time.Duration(n)
	t.Logf("%d ended, %v of CPU time each", n, each)
	if each > limit {
		t.Errorf("an end took %v of CPU time, want at most %v", each, limit)
	}
	if stages.Long() {
		each := (worked(s, n, func(s reaper.Swept) int { return s.Removed }) - ends) / time.Duration(n)
		t.Logf("%d removed, %v of CPU time each", n, each)
		if each > limit {
			t.Errorf("a removal took %v of CPU time, want at most %v", each, limit)
		}
		if left := s.Redis.DBSize(t.Context()).Val(); left > 20 {
			t.Errorf("%d keys are left, want at most 20", left)
		}
	}
	queuetest.Sound(t, s.Q)
}

// worked runs a reaper until did has counted n tasks, and returns the CPU time that Redis had used by then.
func worked(s *stages.Stage, n int, did func(reaper.Swept) int) time.Duration {
	s.Helper()
	over, sum := make(chan struct{}), 0
	stop := s.Reap(reaper.Config{Observe: func(_ int, swept reaper.Swept) {
		before := sum
		if sum += did(swept); before < n && sum >= n {
			close(over)
		}
	}})
	defer stop()
	select {
	case <-over:
		return used(s)
	case <-time.After(5 * time.Minute):
		s.Fatalf("the reaper has not done %d tasks in 5 minutes", n)
		return 0
	}
}

// used returns the CPU time that Redis has used.
func used(s *stages.Stage) time.Duration {
	s.Helper()
	used, err := redistest.CPU(s.Context(), s.Redis)
	if err != nil {
		s.Fatal(err)
	}
	return used
}
