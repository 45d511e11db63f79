package inspect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// This file makes the tasks of TestNoTaskStaysInAStateBeyondItsBound, and the operations on them.

// span returns a random duration of up to 20 s, or 0 in one of n cases.
func (o *oracle) span(n int) time.Duration {
	if o.r.IntN(n) == 0 {
		return 0
	}
	return time.Duration(1+o.r.IntN(20_000)) * time.Millisecond
}

// task returns a task with a random choice of bounds.
func (o *oracle) task() queue.Task {
	task := queue.Task{Kind: "k", Timeout: o.span(3)}
	switch o.r.IntN(6) {
	case 0:
		task.Promise = true
		return task
	case 1:
		task.Timer, task.Delay = true, o.span(9)
		if task.Delay == 0 || task.Timeout > 0 && task.Timeout < task.Delay {
			task.Delay = time.Millisecond
		}
		return task
	case 2:
		task.QueueTimeout = o.span(2)
	case 3, 4:
		task.CancelGrace = o.span(3)
	}
	if task.AttemptTimeout = o.span(2); task.AttemptTimeout > 0 && o.r.IntN(2) == 0 {
		task.MaxRetries, task.OnTimeout = 1, queue.OnTimeoutRetry
		task.Backoff.Delay = o.span(2)
	}
	return task
}

// agent enqueues an agent, claims it and makes it wait.
func (o *oracle) agent() {
	ctx := context.Background()
	task := queue.Task{Kind: "agent", Queue: "agents", Timeout: o.span(3), AttemptTimeout: o.span(2)}
	if task.AttemptTimeout > 0 && o.r.IntN(2) == 0 {
		task.MaxRetries, task.OnTimeout = 1, queue.OnTimeoutRetry
	}
	id := queuetest.Enqueue(o.t, o.q, task).ID
	o.ids = append(o.ids, id)
	for _, c := range o.fetch("agents", 1) {
		s := claim.Suspension{Agent: c.ID, Epoch: c.Epoch, Worker: "w", Wait: o.policy()}
		for i := range 1 + o.r.IntN(5) {
			child := o.task()
			child.ID = fmt.Sprintf("%s.%d", c.ID, i)
			s.Children = append(s.Children, child)
			m := claim.Member{ID: child.ID}
			if o.r.IntN(2) == 0 {
				m.Patience = o.span(9)
			}
			if o.r.IntN(5) == 0 {
				m.Mask = o.mask()
			}
			s.Wait.Members = append(s.Wait.Members, m)
			o.ids = append(o.ids, child.ID)
		}
		s.Wait.Need = o.r.IntN(len(s.Wait.Members) + 1)
		if _, err := claim.Of(o.q).Suspend(ctx, s); err != nil {
			o.t.Fatalf("seed %d: suspend: %v", o.seed, err)
		}
		o.note("%s waits: %+v", c.ID, s)
	}
}

func (o *oracle) policy() claim.Wait {
	modes := []queue.Mode{queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled}
	w := claim.Wait{Entry: 1, Mode: modes[o.r.IntN(len(modes))], Digest: "d", Label: "l",
		FromFirst: o.r.IntN(2) == 0, KeepPending: o.r.IntN(2) == 0, CancelLosers: o.r.IntN(2) == 0}
	if o.r.IntN(3) > 0 {
		w.Limit = o.span(9)
	}
	if w.FromFirst {
		w.Limit = w.Limit / 8 // a longer limit would end after the members' own bounds, and test nothing
	}
	if o.r.IntN(3) == 0 {
		w.Mask = o.mask()
	}
	return w
}

func (o *oracle) mask() string {
	mask := make([]byte, 5)
	for i := range mask {
		mask[i] = "obn"[o.r.IntN(3)]
	}
	return string(mask)
}

func (o *oracle) fetch(line string, n int) []queue.Claim {
	o.seq++
	trip, err := claim.Of(o.q).Fetch(context.Background(), 0, "w", claim.Ask{N: n, Seq: o.seq, Lease: time.Duration(1+o.r.IntN(30)) * time.Second,
		Quotas: []claim.Quota{{Queue: line, N: n}}})
	if err != nil {
		o.t.Fatal(err)
	}
	return trip.Claims
}

// act makes one random call.
func (o *oracle) act() {
	ctx, id := context.Background(), o.ids[o.r.IntN(len(o.ids))]
	switch o.r.IntN(8) {
	case 0, 1:
		for _, c := range o.fetch("default", 1+o.r.IntN(3)) {
			o.note("%s is claimed", c.ID)
		}
	case 2:
		for _, c := range o.fetch("agents", 1) {
			o.note("%s is claimed", c.ID)
		}
	case 3, 4:
		r, err := o.q.Get(ctx, id)
		if err != nil || r.Status != queue.Running {
			return
		}
		verbs := []queue.Verb{queue.Complete, queue.Fail, queue.Release}
		outcome := queue.Outcome{ID: id, Epoch: r.Epoch, Verb: verbs[o.r.IntN(3)], Error: "no"}
		if outcome.Verb == queue.Release {
			outcome.Delay, outcome.Error = o.span(2), ""
		}
		if outcome.Verb == queue.Complete {
			outcome.Error = ""
		}
		if _, err := claim.Of(o.q).Settle(ctx, 0, r.Worker, queue.NewCall(), []queue.Outcome{outcome}, claim.Ask{}); err != nil {
			o.t.Fatal(err)
		}
		o.note("%s: %s", id, outcome.Verb)
	case 5:
		if o.r.IntN(3) > 0 {
			return
		}
		c, err := o.q.Cancel(ctx, id, "x")
		o.note("%s is cancelled: %+v %v", id, c, err)
	case 6:
		s, err := o.q.Resolve(ctx, id, nil)
		o.note("%s is resolved: %+v %v", id, s, err)
	}
}
