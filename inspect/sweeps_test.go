package inspect_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// The time of the last sweep is that of the reaper with the turn. A standby reaper that only checks does not change it.
func TestSweepsSayWhenEachPartitionWasSwept(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := t.Context(), queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		before := time.Now().Add(-time.Minute) // the clock of Redis can differ a little
		if _, err := reaper.Sweep(ctx, q, 1, "r1", 10, time.Hour); err != nil {
			t.Fatal(err)
		}
		first, err := inspect.Sweeps(ctx, q)
		if err != nil || len(first) != 2 {
			t.Fatalf("Sweeps = %+v, %v, want two partitions", first, err)
		}
		if (first[0] != inspect.Sweep{Partition: 0}) {
			t.Errorf("Sweeps = %+v, want nothing of a partition that no reaper has swept", first[0])
		}
		s := first[1]
		if s.Partition != 1 || s.TurnOf != "r1" || s.SweptAt.Before(before) || s.TurnUntil.Sub(s.SweptAt) != 2*time.Hour {
			t.Errorf("Sweeps = %+v, want a sweep of r1 just now, whose turn lasts two fall-backs", s)
		}
		if _, err := reaper.Sweep(ctx, q, 1, "r2", 10, time.Hour); err != nil {
			t.Fatal(err)
		}
		if again, err := inspect.Sweeps(ctx, q); err != nil || again[1] != s {
			t.Errorf("Sweeps = %+v, %v after a standby reaper has checked, want %+v", again, err, s)
		}
	})
}
