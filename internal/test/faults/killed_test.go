package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// If every write is on disk before Redis replies, a crash loses nothing that was acknowledged, and
// no call fails. The file is repaired before the restart: a crash can leave a part of a script that
// was never acknowledged.
func TestRedisKilledWithEveryWriteSyncedLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := withAOF(t, dir, "always")
	s := newStage(t, server.Addr, server.Addr)
	stopFleet := s.fleet(2, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	var stopProducers []func()
	for range 2 {
		stopProducers = append(stopProducers, s.Run(func(ctx context.Context) error { return s.produce(ctx, 15*time.Millisecond) }))
	}
	kills := harness.Times(2, 4, 60)
	for range kills {
		harness.Pass(time.Duration(300+rand.IntN(500)) * time.Millisecond) // sleeps: the load
		server.Kill()
		if n := s.mend(dir); n > 0 {
			t.Logf("the crash left %d bytes of an interrupted script", n)
		}
		harness.Pass(time.Duration(rand.IntN(300)) * time.Millisecond) // sleeps: the outage
		server.Restart(t)
	}
	harness.Pass(300 * time.Millisecond) // sleeps: the load
	for _, stop := range stopProducers {
		stop()
	}
	s.drained()
	stopClerk()
	stats := stopFleet()
	s.untroubled()
	here := s.account(nothing)
	s.sameCount(stats.Completed, here)
	told := s.Ledger.Copy()
	t.Logf("%d kills: %d tasks, %d completions by the clerk and %d cancellations were acknowledged, none is lost; the fleet: %+v",
		kills, len(told.Tasks), told.Count(queue.Completed), told.Count(queue.Cancelled), stats)
	if len(told.Tasks) < 20*kills || told.Count(queue.Completed) < kills {
		t.Errorf("there was too little load for this test")
	}
}

// sameCount checks that the fleet counted as many completions as there are. So no acknowledged
// completion was undone and repeated.
func (s *stage) sameCount(acknowledged int64, here *scene) {
	s.Helper()
	var there int64
	told := s.Ledger.Copy()
	for id, f := range here.fates {
		if byHand := told.Ended(id, queue.Completed); f.Status == queue.Completed && !byHand {
			there++
		}
	}
	if acknowledged != there {
		s.Errorf("the workers count %d completions, and there are %d", acknowledged, there)
	}
}
