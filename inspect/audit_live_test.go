package inspect_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Audits run while tasks are enqueued, claimed, completed, failed, given back, cancelled, timed out
// and removed, and while agents wait and are woken.
func TestAnAuditOfALivelyNamespaceFindsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	q, err := queue.Open(ctx, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	for w := range 4 {
		group.Go(func() { churn(ctx, q, fmt.Sprint("w", w)) })
	}
	group.Go(func() { churnAgents(ctx, q) })
	group.Go(func() { reaper.New(q, reaper.Config{}).Run(ctx) })
	await.Until(t, "tasks of each queue have ended in each way", func() bool { return moves(t, q) })
	last := time.Now().Add(time.Duration(harness.Times(2, 2, 300)) * time.Second)
	for n := 0; n < harness.Times(3, 3, 500) && (n < 2 || time.Now().Before(last)); n++ {
		found, err := inspect.Audit(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Error(f)
		}
	}
}

// moves reports whether tasks of each queue have ended in every way that churn makes them end.
func moves(t *testing.T, q *queue.Queue) bool {
	stats, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	moving := 0
	for _, s := range stats.Queues {
		if s.Completed > 0 && (s.Queue == "agents" || s.Failed > s.TimedOut && s.Cancelled > 0 && s.TimedOut > 0) {
			moving++
		}
	}
	return moving >= 3
}

// churn enqueues, claims, settles and cancels tasks until the context ends.
func churn(ctx context.Context, q *queue.Queue, worker string) {
	quotas := []claim.Quota{{Queue: "a", N: 20}, {Queue: "b", N: 20}}
	pace := time.NewTicker(100 * time.Millisecond) // so that tasks are not made faster than they are removed
	defer pace.Stop()
	for n := int64(1); ctx.Err() == nil; n++ {
		<-pace.C
		// On a busy machine a reaper removes fewer tasks than are made, and each audit would take longer than the one before.
		if q.Client().ZCard(ctx, q.Root(0)+":retained").Val() > 2000 {
			continue
		}
		var tasks []queue.Task
		for i := range 40 {
			timeout := time.Duration(20+i*i) * time.Millisecond
			if i < 4 { // it is cancelled, however busy the machine is
				timeout = time.Minute
			}
			tasks = append(tasks, queue.Task{Kind: "k", Queue: quotas[i%2].Queue, Timeout: timeout, MaxRetries: 1,
				Retention: 100 * time.Millisecond, IdempotencyKey: fmt.Sprint(worker, n, i)})
		}
		receipts, _ := q.EnqueueAll(ctx, tasks)
		reply, _ := claim.Of(q).Fetch(ctx, 0, worker, claim.Ask{N: 40, Seq: n, Lease: time.Minute, Quotas: quotas})
		for i := range 4 {
			if len(receipts) == len(tasks) {
				q.Cancel(ctx, receipts[i].ID, "")
			}
		}
		var outcomes []queue.Outcome
		for i, c := range reply.Claims {
			verb := []queue.Verb{queue.Complete, queue.Complete, queue.Fail, queue.Release}[i/2%4]
			outcomes = append(outcomes, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: verb, Error: "e"})
		}
		claim.Of(q).Settle(ctx, 0, worker, queue.NewCall(), outcomes, claim.Ask{})
	}
}

// churnAgents makes agents that wait for two promises each and then complete, until the context ends.
func churnAgents(ctx context.Context, q *queue.Queue) {
	ask := claim.Ask{N: 10, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "agents", N: 10}}}
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		q.EnqueueAll(ctx, slices.Repeat([]queue.Task{{Kind: "agent", Queue: "agents", Retention: 100 * time.Millisecond}}, 10))
		ask.Seq++
		began, _ := claim.Of(q).Fetch(ctx, 0, "agents", ask)
		for _, c := range began.Claims {
			s := claim.Suspension{Agent: c.ID, Epoch: c.Epoch, Worker: "agents", Wait: claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAll}}
			for _, name := range []string{".a", ".b"} {
				s.Children = append(s.Children, queue.Task{ID: c.ID + name, Kind: "k", Promise: true})
				s.Wait.Members = append(s.Wait.Members, claim.Member{ID: c.ID + name})
			}
			claim.Of(q).Suspend(ctx, s)
		}
		for _, c := range began.Claims {
			q.Resolve(ctx, c.ID+".a", nil)
			q.Resolve(ctx, c.ID+".b", nil)
		}
		ask.Seq++
		woken, _ := claim.Of(q).Fetch(ctx, 0, "agents", ask)
		var outcomes []queue.Outcome
		for _, c := range woken.Claims {
			outcomes = append(outcomes, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete})
		}
		claim.Of(q).Settle(ctx, 0, "agents", queue.NewCall(), outcomes, claim.Ask{})
	}
}
