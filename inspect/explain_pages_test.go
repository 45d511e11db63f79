package inspect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
)

// The first member ends between two of the calls that read the members, so the limit of the wait begins.
// Explain must not mix the states before and after that.
func TestALimitThatBeginsBetweenPagesIsExplainedConsistently(t *testing.T) {
	t.Parallel()
	ctx, rdb := context.Background(), redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	agent, members := crowd(t, q, &queuetest.Taker{Q: q, Worker: "w"}, 450, claim.Wait{Mode: queue.WaitAll, Limit: time.Minute, FromFirst: true})
	if e, err := inspect.Explain(ctx, q, agent); err != nil || e.Bound.Task != members[0] || e.Bound.Left != duration.Duration(61*time.Second) {
		t.Fatalf("%v %v, want it decided 60 s after %s", e, err, members[0])
	}
	calls := 0 // each reads one page, as the script is already loaded
	rdb.AddHook(queuetest.Around{Before: func() {
		if calls++; calls == 2 {
			if _, err := q.Cancel(ctx, members[300], "x"); err != nil {
				t.Error(err)
			}
		}
	}})
	e, err := inspect.Explain(ctx, q, agent)
	if err != nil {
		t.Fatal(err)
	}
	want := inspect.Bound{Kind: inspect.BoundWait, At: testclock.Start.Add(time.Minute).UTC(), Left: duration.Duration(time.Minute), Task: agent}
	if e.Bound != want || e.Wait.Left != 449 || e.Wait.LimitAfter != 0 {
		t.Errorf("%d of 450 left after %d calls, limit after %v, bound %+v, want %+v", e.Wait.Left, calls, e.Wait.LimitAfter, e.Bound, want)
	}
}

// An agent whose wait changes between all pages cannot be explained, and Explain must not try without end.
func TestAWaitThatKeepsChangingIsAnError(t *testing.T) {
	t.Parallel()
	ctx, rdb := context.Background(), redistest.Shared(t).Client(t)
	q := frozen(t, rdb)
	agent, _ := crowd(t, q, &queuetest.Taker{Q: q, Worker: "w"}, 250, claim.Wait{Mode: queue.WaitAll})
	other, calls := redistest.Shared(t).Client(t), 0
	rdb.AddHook(queuetest.Around{Before: func() {
		if calls++; calls%2 == 0 { // the second page of each try
			other.HIncrBy(ctx, q.Root(0)+":wait:"+agent, "since", 1)
		}
	}})
	if e, err := inspect.Explain(ctx, q, agent); e != nil || err == nil || !strings.Contains(err.Error(), "call Explain again") {
		t.Errorf("Explain = %v, %v after %d calls, want an error that says to call it again", e, err, calls)
	}
	if calls != 10 {
		t.Errorf("Explain made %d calls, want 5 times 2", calls)
	}
}
