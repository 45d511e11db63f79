package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/queue"
)

// The first end of a wait comes between two of the calls that read its members, and its limit
// begins. What is told is not half of before and half of after.
func TestALimitThatBeginsBetweenPagesIsToldWhole(t *testing.T) {
	t.Parallel()
	ctx, rdb := context.Background(), redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	agent, members := crowd(t, q, &taker{q: q, worker: "w"}, 450, queue.Wait{Mode: queue.WaitAll, Limit: time.Minute, FromFirst: true})
	if e, err := q.Explain(ctx, agent); err != nil || e.Bound.Task != members[0] || e.Bound.Left != queue.Duration(61*time.Second) {
		t.Fatalf("%v %v, want it decided 60 s after %s", e, err, members[0])
	}
	calls := 0 // a page each: the script is known by now
	rdb.AddHook(around{before: func() {
		if calls++; calls == 2 {
			if _, err := q.Cancel(ctx, members[300], "x"); err != nil {
				t.Error(err)
			}
		}
	}})
	e, err := q.Explain(ctx, agent)
	if err != nil {
		t.Fatal(err)
	}
	want := queue.Bound{Kind: queue.BoundWait, At: testclock.Start.Add(time.Minute).UTC(), Left: queue.Duration(time.Minute), Task: agent}
	if e.Bound != want || e.Wait.Left != 449 || e.Wait.LimitAfter != 0 {
		t.Errorf("%d of 450 left after %d calls, limit after %v, bound %+v, want %+v", e.Wait.Left, calls, e.Wait.LimitAfter, e.Bound, want)
	}
}
