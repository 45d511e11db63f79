package shards

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestSentinel(t *testing.T) {
	group := redistest.StartSentinels(t)
	s := newStage(t, group.URL(), 4)
	s.work(noop)
	s.work(noop)
	l := s.load()
	for range kills() {
		old := group.Master(t)
		stop := pulse(t, except(group.Redis, old.Server))
		killed := time.Now()
		old.Kill()
		var promoted time.Duration
		var master string
		await.Until(t, "the sentinels name another master", func() bool {
			promoted = time.Since(killed)
			master = group.Master(t).Addr
			return master != old.Addr
		})
		s.flows(l, killed)
		away := max(l.Gap(s.all(), killed))
		noise := stop()
		t.Logf("without service for %v; the sentinels named another master after %v", round(away), round(promoted))
		if harness.Long() && away > promoted+2*time.Second+noise {
			t.Errorf("without service for %v, and the sentinels named another master after %v", away, promoted)
		}
		if err := old.Server.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := group.Await(); err != nil {
			t.Fatal(err)
		}
		if again := group.Master(t).Addr; again != master { // on a busy machine; what is lost then counts as well
			t.Logf("the test killed one master, and the sentinels promoted two: %s, then %s", master, again)
		}
	}
	s.accountOf(l)
}
