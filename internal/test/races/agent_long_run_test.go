package races

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A task with very many children reaches its deadline. The children are ended in several calls, each once.
func TestARunOfVeryManyChildrenEnds(t *testing.T) {
	redistest.NoRace(t, "it has one goroutine")
	t.Parallel()
	newLongRun(t, harness.Times(2000, 2000, 100_000)).end()
}

// longRun is a task with a deadline and very many children.
type longRun struct {
	*lane
	record *queue.Record
}

func newLongRun(t *testing.T, children int) *longRun {
	for spare := 1; ; spare *= 2 {
		r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{}), mix: map[string]int{}}
		run := &longRun{lane: &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q}}}
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
	for run.zcard("draining")+run.zcard("deadlines") > 0 && time.Since(start) < await.Patience {
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
