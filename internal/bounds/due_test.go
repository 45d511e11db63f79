package bounds

import (
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Up to 300,000 tasks are due in the same millisecond, and their records are removed after the shortest
// retention. The test measures elapsed time, which other work on the machine adds to. So the limits are
// three times what an idle machine of two cores takes.
func TestManyTasksDueAtOnceEndAndGo(t *testing.T) {
	redistest.NoRace(t, "it measures time, and the detector slows it down")
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
	ends := worked(s, n, func(s reaper.Swept) int { return s.TimedOut })
	each := func(d time.Duration) time.Duration { return d / time.Duration(n) }
	t.Logf("%d ended in %v after the deadline, %v each", n, ends.Sub(deadline), each(ends.Sub(deadline)))
	if took := each(ends.Sub(deadline)); took > 60*time.Microsecond {
		t.Errorf("an end took %v, want at most 60µs", took)
	}
	if stages.Long() {
		goes := worked(s, n, func(s reaper.Swept) int { return s.Removed })
		t.Logf("%d removed in %v after the first was due", n, goes.Sub(deadline.Add(time.Minute)))
		if took := each(goes.Sub(deadline.Add(time.Minute))); took > 60*time.Microsecond {
			t.Errorf("a removal took %v, want at most 60µs", took)
		}
		if left := s.Redis.DBSize(t.Context()).Val(); left > 20 {
			t.Errorf("%d keys are left, want at most 20", left)
		}
	}
	queuetest.Sound(t, s.Q)
}

// worked runs a reaper until did has counted n tasks, and returns when that was.
func worked(s *stages.Stage, n int, did func(reaper.Swept) int) time.Time {
	s.Helper()
	over, once, sum := make(chan time.Time, 1), sync.Once{}, 0
	stop := s.Reap(reaper.Config{Observe: func(_ int, swept reaper.Swept) {
		if sum += did(swept); sum >= n {
			once.Do(func() { over <- time.Now() })
		}
	}})
	defer stop()
	select {
	case at := <-over:
		return at
	case <-time.After(5 * time.Minute):
		s.Fatalf("the reaper has not done %d tasks in 5 minutes", n)
		return time.Time{}
	}
}
