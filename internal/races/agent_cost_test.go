package races

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The cost of a member's end must not depend on the number of members: one wait of 10,000 is compared
// with a thousand waits of 10, in turns.
func TestAnEndCostsTheSameInALargeWait(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	const few, many = 10, 10_000
	rounds, list := 12, 100
	if stages.Long() {
		rounds, list = 40, 200
	}
	r := &ring{stage: newStage(t, redistest.Start(t).Addr, queue.Config{}), mix: map[string]int{}}
	alone := stages.Client(t, r.Addr)
	laneOf := func(name string) *lane {
		return &lane{ring: r, name: name, hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}
	}
	large, small := laneOf("large"), laneOf("small")
	large.crowd(1, many)
	small.crowd(many/few, few)

	// The members are claimed first, so that only their ends are measured.
	ends := func(l *lane) time.Duration {
		claims := l.take(0, l.hired(), l.members(), list, time.Hour)
		before, err := redistest.CPU(r.Context(), alone)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claims {
			if !l.report(0, l.hired(), queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}) {
				t.Fatal("the report of a member was refused")
			}
		}
		after, err := redistest.CPU(r.Context(), alone)
		if err != nil {
			t.Fatal(err)
		}
		return (after - before) / time.Duration(len(claims))
	}
	ends(large)
	ends(small)
	var inLarge, inSmall spans
	for range rounds {
		inLarge = append(inLarge, ends(large))
		inSmall = append(inSmall, ends(small))
	}
	ratio := float64(inLarge.at(0.5)) / float64(inSmall.at(0.5))
	t.Logf("an end costs the server %v in a wait of %d, %v in one of %d (medians of %d × %d): %.2f times",
		inLarge.at(0.5), many, inSmall.at(0.5), few, rounds, list, ratio)
	if ratio > 1.2 {
		t.Errorf("an end in a wait of %d costs %.2f times what it does in one of %d, want at most 1.2", many, ratio, few)
	}
}

// crowd creates agents that wait for all of their members.
func (l *lane) crowd(agents, members int) {
	l.Helper()
	for range agents {
		b := l.bout(queue.Task{}, 0)
		if b == nil {
			l.FailNow()
		}
		b.more(members)
		b.wait.Mode = queue.WaitAll
		if !b.waits() {
			l.FailNow()
		}
	}
}

// A task with very many children reaches its deadline. The children are ended in several calls, each
// once, and no call is long.
func TestARunOfVeryManyChildrenEnds(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	children := 5000
	if stages.Long() {
		children = 100_000
	}
	best, longest := map[string]time.Duration{}, redistest.Paced(t, redistest.Start(t).Client(t), longest)
	for try := range 4 {
		run := newLongRun(t, children)
		run.end()
		for name, d := range run.meter.Empty() {
			if old, ok := best[name]; !ok || d < old {
				best[name] = d
			}
		}
		if slices.Max(slices.Collect(maps.Values(best))) <= longest || t.Failed() {
			break
		}
		t.Logf("try %d: %v", try, best)
	}
	t.Logf("the longest calls of each script: %v", best)
	for name, d := range best {
		if d > longest {
			t.Errorf("a run of %s took %v, want at most %v", name, d, longest)
		}
	}
}

// longRun is a task with a deadline and very many children.
type longRun struct {
	*lane
	*meter
	record *queue.Record
}

func newLongRun(t *testing.T, children int) *longRun {
	for spare := 1; ; spare *= 2 {
		r := &ring{stage: newStage(t, redistest.Start(t).Addr, queue.Config{}), mix: map[string]int{}}
		run := &longRun{meter: newMeter(t, r.Addr), lane: &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q}}}
		r.Redis.AddHook(run.meter)
		timeout := time.Second + time.Duration(spare*children)*100*time.Microsecond
		id := run.enlist([]queue.Task{{Kind: "run", Queue: "runs", Timeout: timeout}})[0]
		tasks := make([]queue.Task, children)
		for i := range tasks {
			tasks[i] = queue.Task{ID: fmt.Sprintf("%s.%d", id, i+1), Kind: "child"}
		}
		receipts, err := r.Q.EnqueueAll(r.Context(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		if errors.Is(receipts[children-1].Err, refusal.ErrOwnerEnded) {
			t.Logf("its children were not created within %v", timeout)
			continue
		}
		for _, receipt := range receipts {
			run.ids = append(run.ids, receipt.ID)
		}
		run.record = r.Record(id)
		return run
	}
}

// end sweeps until the task and its children have ended, and checks that each ended once, at the
// deadline.
func (run *longRun) end() {
	tail := run.tail(len(run.ids)) // the stream keeps only about 100,000 events
	until(run.record.Until)
	start, sweeps := time.Now(), 0
	for run.zcard("draining")+run.zcard("deadlines") > 0 && time.Since(start) < time.Minute {
		run.sweep(0)
		sweeps++
	}
	took := time.Since(start)
	run.lane.Logf("a task and its %d children ended in %d sweeps and %v, %.0f/s", len(run.ids)-1, sweeps, took, float64(len(run.ids))/took.Seconds())

	ends := map[string]int{}
	for _, e := range await.Receive(run.lane.T, tail, "each task has an event") {
		ends[e.ID]++
	}
	list, err := run.Q.GetAll(run.Context(), run.ids)
	if err != nil {
		run.lane.Fatal(err)
	}
	records := map[string]*queue.Record{}
	for i, id := range run.ids {
		r := list[i]
		records[id] = r
		switch {
		case r == nil || !r.TimedOut || !r.CompletedAt.Equal(run.record.Until):
			run.Complain("%s is %+v, want it timed out with its owner at %v", id, r, run.record.Until)
		case ends[id] != 1:
			run.Complain("%s has %d ends in the events, want 1", id, ends[id])
		}
	}
	run.checkCounts(records)
	run.Audit(run.Q)
}
