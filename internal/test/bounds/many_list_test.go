package bounds

import (
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A page of a list looks at a bounded number of tasks, in small commands, and finds the first 100 tasks of a filter
// among very many. With CURFEW_LONG there are 1,000,000 tasks: of 100 one is delayed, one was cancelled and one has
// completed, and of 1,000 one is of a rare kind.
func TestAListAmongManyTasksHoldsNobodyUp(t *testing.T) {
	redistest.NoRace(t, "its calls are made one after the other")
	n := harness.Times(12_000, 12_000, 1_000_000)
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	since := crowdedLists(t, q, n)
	s := &sizes{}
	rdb.AddHook(s)
	for _, test := range []struct {
		name   string
		filter inspect.Filter
	}{
		{"all", inspect.Filter{}},
		{"pending", inspect.Filter{Statuses: []queue.Status{queue.Pending}}},
		{"a queue", inspect.Filter{Queue: "mail"}},
		{"a common kind", inspect.Filter{Kind: "k"}},
		{"a rare kind", inspect.Filter{Kind: "rare"}},
		{"running", inspect.Filter{Statuses: []queue.Status{queue.Running}}},
		{"waiting, none", inspect.Filter{Statuses: []queue.Status{queue.Waiting}}},
		{"completed", inspect.Filter{Statuses: []queue.Status{queue.Completed}}},
		{"cancelled", inspect.Filter{Statuses: []queue.Status{queue.Cancelled}}},
		{"timed out, none", inspect.Filter{TimedOut: true}},
		{"an error", inspect.Filter{Statuses: []queue.Status{queue.Failed, queue.Cancelled}, ErrorText: "421"}},
		{"since then, in a queue", inspect.Filter{Since: since, Queue: "new"}},
		{"a kind that no task has", inspect.Filter{Kind: "none"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			page, lines, looked, pages := "", 0, 0, 0
			for ; pages == 0 || page != "" && lines < 100; pages++ {
				got, err := inspect.List(t.Context(), q, test.filter, page, 100)
				if err != nil {
					t.Fatal(err)
				}
				if got.Looked > 10_000 {
					t.Errorf("a page looked at %d tasks", got.Looked)
				}
				page, lines, looked = got.Next, lines+len(got.Lines), looked+got.Looked
			}
			t.Logf("%d tasks: looked at %d in %d pages", lines, looked, pages)
			s.small(t)
		})
	}
}

// crowdedLists enqueues n tasks, and ends some of them. It returns a time after which few were created.
func crowdedLists(t *testing.T, q *queue.Queue, n int) time.Time {
	t.Helper()
	enqueue := func(n int, task queue.Task) (ids []string) {
		t.Helper()
		for n > 0 {
			some := min(n, 10_000)
			receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{task}, some))
			if err != nil || receipts[0].Err != nil {
				t.Fatal(err, receipts[0].Err)
			}
			for _, r := range receipts {
				ids = append(ids, r.ID)
			}
			n -= some
		}
		return ids
	}
	payload := make([]byte, 100)
	enqueue(n/1000, queue.Task{Kind: "rare", Payload: payload, Timeout: 24 * time.Hour})
	enqueue(n*9/10, queue.Task{Kind: "k", Payload: payload, Timeout: 24 * time.Hour})
	enqueue(n/20, queue.Task{Kind: "k", Queue: "mail", Payload: payload, Timeout: 24 * time.Hour})
	enqueue(n/100, queue.Task{Kind: "k", Delay: time.Hour, Timeout: 24 * time.Hour})
	enqueue(n/100, queue.Task{Kind: "k", Queue: "done", Payload: payload})
	if _, err := q.CancelAll(t.Context(), enqueue(n/100, queue.Task{Kind: "k", Queue: "failed"}), "smtp: 421"); err != nil {
		t.Fatal(err)
	}
	for done, seq := 0, int64(1); done < n/100+50; seq++ { // the last 50 run on
		trip, err := claim.Of(q).Fetch(t.Context(), 0, "w", claim.Ask{N: min(500, n/100-done), Seq: seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "done", N: 500}}})
		if err != nil {
			t.Fatal(err)
		}
		var outcomes []queue.Outcome
		for i, c := range trip.Claims {
			if done+i < n/100-50 {
				outcomes = append(outcomes, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete})
			}
		}
		if _, err := claim.Of(q).Settle(t.Context(), 0, "w", queue.NewCall(), outcomes, claim.Ask{}); err != nil {
			t.Fatal(err)
		}
		if done += len(trip.Claims); len(trip.Claims) == 0 || done >= n/100 {
			break
		}
	}
	time.Sleep(2 * time.Millisecond) // sleeps: nothing tells when the clock of Redis has moved on
	since := time.Now()
	enqueue(50, queue.Task{Kind: "k", Queue: "new"})
	return since
}
