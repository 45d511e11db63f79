package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// One worker process a second is killed and replaced while many tasks run. Each task ends once. (A
// task that four killed workers held, one after the other, ends as FAILED, lease_lost.)
func TestWorkersKilledEverySecondLoseNoTask(t *testing.T) {
	tasks, span := harness.Times(1000, 2000, 50_000), time.Duration(harness.Times(4, 5, 60))*time.Second
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	w := s.witness(s.Context(), server.Addr, "0") // the stream keeps only 100,000 events
	s.Reap(reaper.Config{})
	var children []*harness.Child
	for range 4 {
		children = append(children, s.spawn("crowd", shortest))
	}
	feed := s.Run(func(ctx context.Context) error { return s.feed(ctx, tasks, span) })
	over := time.Now().Add(span)
	kills := 0
	for ; time.Now().Before(over); kills++ {
		harness.Pass(time.Second + time.Duration(rand.IntN(100)-50)*time.Millisecond) // sleeps: between two kills
		i := rand.IntN(len(children))
		s.busy(children[i], over)
		children[i].Kill()
		children[i] = s.spawn("crowd", shortest)
	}
	await.Until(t, "all tasks are enqueued", func() bool { return len(s.Ledger.Copy().Tasks) == tasks })
	feed()
	s.drained()
	for _, c := range children {
		c.Kill()
	}
	await.Until(t, "no worker is left", func() bool { return s.Redis.ZCard(s.Context(), s.Key("workers")).Val() == 0 })
	end := s.Redis.XRevRangeN(s.Context(), s.Q.EventsKey(0), "+", "-", 1).Val()[0].ID
	await.Until(t, "all events were read", func() bool { seen := w.seen(); return len(seen) > 0 && seen[len(seen)-1].Entry == end })
	s.untroubled()
	here := s.accountOf(w.seen(), nothing)
	losses, failed := 0, 0
	for id, f := range here.fates {
		losses += f.Losses
		if f.Status != queue.Completed {
			failed++
			t.Log(id, life(here.events, id))
		}
	}
	t.Logf("%d tasks, %d kills: %d leases lost, %d tasks FAILED for that reason", len(here.fates), kills, losses, failed)
	if losses < kills/2 || len(here.fates) != tasks {
		t.Errorf("%d leases lost and %d tasks are too few for this test", losses, len(here.fates))
	}
}

// busy waits until a child has claims, or there are no more tasks. On a busy machine a child may need longer to start than the time between two kills.
func (s *stage) busy(c *harness.Child, over time.Time) {
	s.Helper()
	pid := fmt.Sprintf("-%d-", c.Pid())
	await.Until(s.T, "a worker has claims", func() bool {
		for _, name := range s.Redis.ZRange(s.Context(), s.Key("workers"), 0, -1).Val() {
			if strings.Contains(name, pid) && s.Redis.ZCard(s.Context(), s.Key("claims:"+name)).Val() > 0 {
				return true
			}
		}
		return time.Now().After(over)
	})
}

// feed enqueues n tasks, evenly over a span.
func (s *stage) feed(ctx context.Context, n int, span time.Duration) error {
	q := s.Another()
	const list = 50
	start := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i += list {
		harness.Pass(time.Until(start.Add(span * time.Duration(i) / time.Duration(n)))) // sleeps: the rate
		s.hand(q, slices.Repeat([]queue.Task{{Kind: "crowd", Queue: "crowd"}}, min(list, n-i)))
	}
	return nil
}
