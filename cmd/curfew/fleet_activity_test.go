package main

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// activeNamespace has a timeout by each policy, an attempt that timed out, late outcomes, and an agent that was woken late.
func activeNamespace(t *testing.T) (url string) {
	t.Helper()
	server, at := redistest.Embedded(t), testclock.Start
	server.SetTime(at)
	q := queuetest.Open(t, server.Client(), queue.Config{Namespace: "shop"})
	pass := func(d time.Duration) {
		at = at.Add(d)
		server.SetTime(at)
		if _, err := reaper.Sweep(t.Context(), q, 0, "r", 100, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	for _, task := range []queue.Task{
		{ID: "0-LATE", Kind: "render", Timeout: 10 * time.Second},
		{ID: "0-FAIL", Kind: "render", Timeout: 10 * time.Second, OnDeadline: queue.DeadlineFail},
		{ID: "0-TWICE", Kind: "render", AttemptTimeout: 5 * time.Second, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 1},
	} {
		queuetest.Enqueue(t, q, task)
	}
	late := []queue.Outcome{{ID: "0-LATE", Verb: queue.Complete}, {ID: "0-FAIL", Verb: queue.Complete}}
	for i := range late {
		late[i].Epoch = w.Take(t, late[i].ID, "default").Epoch
	}
	w.Take(t, "0-TWICE", "default")
	pass(6 * time.Second)
	pass(5 * time.Second)
	for _, o := range late {
		w.Report(t, queue.NewCall(), o)
	}

	queuetest.Enqueue(t, q, queue.Task{ID: "0-AGENT", Kind: "agent", Queue: "agents"})
	held := w.Take(t, "0-AGENT", "agents")
	child := queue.Task{ID: "0-AGENT.c", Kind: "render", Queue: "mail", Timeout: time.Second}
	if outcome, err := claim.Of(q).Suspend(t.Context(), claim.Suspension{Agent: "0-AGENT", Epoch: held.Epoch, Worker: "w1", Children: []queue.Task{child},
		Wait: claim.Wait{Entry: 1, Digest: "d", Members: []claim.Member{{ID: child.ID}}, Limit: time.Hour}}); outcome != nil || err != nil {
		t.Fatal(outcome, err)
	}
	pass(1020 * time.Millisecond)
	return "redis://" + server.Addr()
}

// Read the files of testdata/activity before you commit them.
func TestTheCountsOfKindsAndQueuesAreThoseOfTestdata(t *testing.T) {
	url := activeNamespace(t)
	for file, args := range map[string]string{"kind": "kind get render agent", "queue": "queue get default mail agents"} {
		text := ""
		for _, format := range []string{"text", "json"} {
			line := args + " -o " + format
			out := expect(t, 0, "", line+" --namespace shop --redis "+url)
			text += "$ curfew " + line + "\n" + out + "\n"
		}
		golden(t, "activity/"+file, text)
	}
}
