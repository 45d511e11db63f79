package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Worker processes killed one a second, and replaced, while a crowd of tasks runs:
// each ends once. (One that was in four workers' hands when they died ends as FAILED,
// lease_lost; that is an end too.)
func TestWorkersKilledEverySecondLoseNoTask(t *testing.T) {
	tasks, span := times(1000, 8000, 50_000), time.Duration(times(4, 10, 60))*time.Second
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	w := s.witness(s.ctx, server.Addr, "0") // the stream forgets what is older than 100,000
	s.reap()
	var children []*child
	for range 4 {
		children = append(children, s.spawn("crowd", shortest))
	}
	feed := s.run(func(ctx context.Context) error { return s.feed(ctx, tasks, span) })
	over := time.Now().Add(span)
	kills := 0
	for ; time.Now().Before(over); kills++ {
		pass(time.Second + time.Duration(rand.IntN(100)-50)*time.Millisecond) // sleeps: between two kills
		i := rand.IntN(len(children))
		children[i].kill()
		children[i] = s.spawn("crowd", shortest)
	}
	eventually(t, "all are handed over", func() bool { return len(s.ledger.copy().tasks) == tasks })
	feed()
	s.drained()
	for _, c := range children {
		c.kill()
	}
	eventually(t, "no worker is left", func() bool { return s.rdb.ZCard(s.ctx, s.key("workers")).Val() == 0 })
	end := s.rdb.XRevRangeN(s.ctx, s.q.EventsKey(0), "+", "-", 1).Val()[0].ID
	eventually(t, "all events were read", func() bool { seen := w.seen(); return len(seen) > 0 && seen[len(seen)-1].entry == end })
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
	t.Logf("%d tasks, %d kills: %d leases lost, %d tasks failed by that", len(here.fates), kills, losses, failed)
	if losses < kills/2 || len(here.fates) != tasks {
		t.Errorf("%d leases lost and %d tasks prove little", losses, len(here.fates))
	}
}

// feed hands over so many tasks, evenly over a span.
func (s *stage) feed(ctx context.Context, n int, span time.Duration) error {
	q := s.another()
	const list = 50
	start := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i += list {
		pass(time.Until(start.Add(span * time.Duration(i) / time.Duration(n)))) // sleeps: the rate
		s.hand(q, slices.Repeat([]queue.Task{{Kind: "crowd", Queue: "crowd"}}, min(list, n-i)))
	}
	return nil
}
