package audit

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
)

// An agent is a member of another agent's wait, and its limit there is over. Then its own wait ends. It
// is not woken, since the next sweep cancels it: that is not an inconsistency.
func TestAnAgentWhoseLimitInItsOwnersWaitIsOverIsNotWoken(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rdb, ctx := redistest.Shared(t).Client(t), t.Context()
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler), Library: testclock.Library(t, rdb)})
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(0)
	suspend := func(agent string, child queue.Task, patience time.Duration) {
		t.Helper()
		seq++
		got, err := claim.Of(q).Fetch(ctx, 0, "w1", claim.Ask{N: 1, Seq: seq, Lease: 48 * time.Hour, Quotas: []claim.Quota{{Queue: "default", N: 1}}})
		if err != nil || len(got.Claims) != 1 || got.Claims[0].ID != agent {
			t.Fatal(got, err)
		}
		w := claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAll, Members: []claim.Member{{ID: child.ID, Patience: patience}}}
		if _, err := claim.Of(q).Suspend(ctx, claim.Suspension{Agent: agent, Epoch: 1, Worker: "w1", Wait: w, Children: []queue.Task{child}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := q.Enqueue(ctx, queue.Task{Kind: "k"})
	if err != nil {
		t.Fatal(err)
	}
	agent := r.ID + ".1"
	suspend(r.ID, queue.Task{ID: agent, Kind: "k"}, time.Second)
	suspend(agent, queue.Task{ID: agent + ".c", Kind: "k", Promise: true}, 0)
	testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(2*time.Second))
	if _, err := q.Resolve(ctx, agent+".c", nil); err != nil {
		t.Fatal(err)
	}
	rdb.Del(ctx, q.Root(0)+":clock") // it is no key of Curfew
	whole, err := Read(ctx, q, 0)
	if err != nil {
		t.Fatal(err)
	}
	if state := whole.Hashes["wait:"+agent]["state"]; state != "fired" {
		t.Fatalf("the wait is %q, want fired: the test shows nothing", state)
	}
	walked, err := Run(ctx, q, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The owner is in another part, as in a large partition.
	alone, err := (&reader{Queue: q, root: q.Root(0)}).readPart(ctx, part{ids: []string{agent}})
	if err != nil {
		t.Fatal(err)
	}
	for what, findings := range map[string][]Finding{"the partition": whole.Check(0), "the partition in parts": walked,
		"the agent": alone.checkTasks(0, []string{agent})} {
		if got := fmt.Sprint(findings); got != "[]" {
			t.Errorf("the audit of %s finds %s", what, got)
		}
	}
}
