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

// 300,000 tasks are due in one millisecond, and their records go after the shortest retention. What is
// measured is how long Redis worked on it, by the clock: work beside this test adds to it, so
// the limits are three times what an idle machine of two cores takes.
func TestManyTasksDueAtOnceEndAndGo(t *testing.T) {
	redistest.NoRace(t, "the detector stretches what it measures")
	n := stages.Times(5_000, 20_000, 300_000)
	s := stages.New(t, redistest.Start(t).Addr, queue.Config{})
	const chunk = 5000
	deadline := time.Now().Add(2*time.Second + time.Duration(n)*50*time.Microsecond).Truncate(time.Millisecond)
	for range n / chunk {
		tasks := make([]queue.Task, chunk)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Deadline: deadline, Retention: time.Second} // which is a minute
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
		t.Errorf("an end took %v, of at most 60µs", took)
	}
	if stages.Long() {
		goes := worked(s, n, func(s reaper.Swept) int { return s.Removed })
		t.Logf("%d removed in %v after the first was due", n, goes.Sub(deadline.Add(time.Minute)))
		if took := each(goes.Sub(deadline.Add(time.Minute))); took > 60*time.Microsecond {
			t.Errorf("a removal took %v, of at most 60µs", took)
		}
		if left := s.Redis.DBSize(t.Context()).Val(); left > 20 {
			t.Errorf("%d keys are left", left)
		}
	}
	queuetest.Sound(t, s.Q)
}

// worked runs a reaper until it has done something to n tasks, and tells when that was.
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
		s.Fatal("they are not done in 5 minutes")
		return time.Time{}
	}
}
