package model

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// TestExplainDecidesAsTheSweepDoes explains an agent and its members at random instants, sweeps then, and reads them again. If explain
// says how and when a task will end, that is its end.
func TestExplainDecidesAsTheSweepDoes(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	seed, rdb := size.Seed(), redistest.Start(t).Client(t)
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: "explain", Partitions: 1, Library: testclock.Library(t, rdb), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &lookStage{T: t, ctx: t.Context(), rdb: rdb, q: q, base: testclock.Start}
	said := map[inspect.Why]int{}
	for i := range size.Times(100, 400, 60_000) {
		plan := drawLook(rand.New(rand.NewPCG(seed, uint64(i))), 1)
		s.play(plan, look{sweeps: func(at int) bool { return slices.Contains(plan.looks, at) }, around: func(g *lookGame, sweep func()) {
			explained := g.explain()
			sweep()
			for _, e := range explained {
				after, err := q.Get(s.ctx, e.ID)
				s.check(err)
				said[e.Why]++
				if why := unlike(e, after); why != "" {
					t.Fatalf("sequence %d of seed %d: %s\n%s\nafter the sweep it is %s (%s) at %v\n%v", i, seed, why, e, after.Status, after.Reason, after.CompletedAt, plan)
				}
			}
		}})
	}
	t.Logf("explained: %v", said)
	if said[inspect.WhyOverdue] == 0 || said[inspect.WhyDoomed] == 0 {
		t.Errorf("no end was foretold: %v", said)
	}
}

func (g *lookGame) explain() (all []*inspect.Explanation) {
	ids := []string{g.agent}
	for _, m := range g.members {
		ids = append(ids, g.id(m))
	}
	for _, id := range ids {
		e, err := inspect.Explain(g.ctx, g.q, id)
		if !errors.Is(err, refusal.ErrNotFound) {
			g.check(err)
			all = append(all, e)
		}
	}
	return all
}

// unlike returns how an explanation and the record after the sweep differ, or "".
func unlike(e *inspect.Explanation, after *queue.Record) string {
	foretold := e.Why == inspect.WhyOverdue || e.Why == inspect.WhyDoomed
	if foretold && (after.Status != e.End.Status || after.Reason != e.End.Reason || !after.CompletedAt.Equal(e.End.At)) {
		return "it was to end otherwise"
	}
	return ""
}
