package races

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// fallback is the fall-back of these reapers, which is the default.
const fallback = 500 * time.Millisecond

// stage is a new namespace on a real server.
type stage struct {
	*harness.Stage
}

func newStage(t *testing.T, addr string, config queue.Config) *stage {
	t.Helper()
	return &stage{harness.New(t, addr, config)}
}

func (s *stage) fetch(worker string, seq int64, n int, lease time.Duration) []queue.Claim {
	s.Helper()
	trip, err := claim.Of(s.Q).Fetch(s.Context(), 0, worker, ask(seq, n, lease))
	if err != nil {
		s.Fatal(err)
	}
	return trip.Claims
}

func ask(seq int64, n int, lease time.Duration) claim.Ask {
	return claim.Ask{N: n, Seq: seq, Lease: lease, Quotas: []claim.Quota{{Queue: "default", N: n}}}
}

func (s *stage) zcard(clock string) int64 { return s.Redis.ZCard(s.Context(), s.Key(clock)).Val() }

// until waits for an instant.
//
// sleeps: only in tests of what happens at an instant or within a span of time
func until(instant time.Time) { <-at(instant) }

// at returns a channel that is closed at an instant.
func at(instant time.Time) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(time.Until(instant), func() { close(c) })
	return c
}
