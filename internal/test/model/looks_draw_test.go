package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// lookPlan is a wait of an agent, its members, and what is done to them at which instant. All
// instants are in ms from the beginning.
type lookPlan struct {
	partition int
	begins    int // when the wait begins
	wait      claim.Wait
	members   []lookMember
	acts      []lookAct
	looks     []int // the instants of rare sweeps
}

// lookMember is a child that the agent waits for.
type lookMember struct {
	name   string
	sort   string // promise, timer, line (in line and never fetched), run (a worker runs it), signal
	task   queue.Task
	within int    // 0: none
	mask   string // "": the wait's
	late   bool   // the wait makes it; otherwise it exists before the wait
}

type lookAct struct {
	at     int
	op     string // complete, fail, discard, cancel; of the agent: stop
	member int
}

// lookEnd is the latest instant of a plan.
const lookEnd = 200

// drawLook draws a plan. It uses few instants, so that they are close to each other.
func drawLook(r *rand.Rand, partitions int) lookPlan {
	p := lookPlan{partition: r.IntN(partitions), begins: r.IntN(20)}
	for i := range 1 + r.IntN(6) {
		p.members = append(p.members, drawLookMember(r, i))
	}
	p.wait = drawLookWait(r, len(p.members))
	for range r.IntN(2 * len(p.members)) {
		act := lookAct{at: r.IntN(lookEnd), member: r.IntN(len(p.members))}
		act.op = []string{"complete", "complete", "fail", "discard", "cancel"}[r.IntN(5)]
		p.acts = append(p.acts, act)
	}
	if r.IntN(25) == 0 {
		p.acts = append(p.acts, lookAct{at: p.begins + r.IntN(lookEnd-p.begins), op: "stop"})
	}
	slices.SortStableFunc(p.acts, func(a, b lookAct) int { return a.at - b.at })
	for range 1 + r.IntN(3) {
		p.looks = append(p.looks, r.IntN(lookEnd))
	}
	return p
}

func drawLookMember(r *rand.Rand, i int) lookMember {
	ms := func() time.Duration { return time.Duration(1+r.IntN(lookEnd)) * time.Millisecond }
	often := func() bool { return r.IntN(2) == 0 }
	m := lookMember{name: fmt.Sprint(i + 1), sort: []string{"promise", "timer", "line", "run", "run", "signal"}[r.IntN(6)], late: r.IntN(4) == 0}
	m.task = queue.Task{Kind: "k", Queue: "line"}
	if m.sort != "signal" && often() {
		m.task.Timeout = ms()
		m.task.OnDeadline = []queue.OnDeadline{"", queue.DeadlineFail}[r.IntN(2)]
	}
	switch m.sort {
	case "promise":
		m.task.Promise = true
	case "signal":
		m.name, m.task = fmt.Sprint("s-", i+1), queue.Task{Kind: "signal", Queue: "agents", Promise: true}
	case "timer":
		m.task.Timer, m.task.Delay = true, ms()
		if m.task.Timeout > 0 {
			m.task.Timeout += m.task.Delay
		}
	case "line":
		m.task.Priority = r.IntN(4)
		if often() {
			m.task.QueueTimeout = ms()
		}
	case "run":
		m.late, m.task.Queue, m.task.Priority = false, "run", r.IntN(4)
		if often() {
			m.task.AttemptTimeout = ms()
		}
		if r.IntN(4) == 0 {
			m.task.OnTimeout, m.task.MaxRetries = queue.OnTimeoutRetry, 1+r.IntN(2)
		}
		if r.IntN(4) == 0 {
			m.task.CancelGrace = time.Duration(1+r.IntN(20)) * time.Millisecond
		}
	}
	if m.sort != "signal" && r.IntN(4) == 0 && (m.task.CancelGrace == 0 || r.IntN(10) == 0) {
		m.within = 1 + r.IntN(lookEnd)
	}
	m.mask = []string{"", "", "", "", "ooooo", "obbbn", "bnooo"}[r.IntN(7)]
	return m
}

func drawLookWait(r *rand.Rand, n int) claim.Wait {
	modes := []queue.Mode{queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled}
	w := claim.Wait{Entry: 1, Mode: modes[r.IntN(len(modes))], Digest: "d", Label: "l", Need: 1 + r.IntN(n), Proceed: r.IntN(2) == 0,
		KeepPending: r.IntN(2) == 0, CancelLosers: r.IntN(2) == 0, Mask: []string{"obbbb", "obbbb", "obbbn", "ooooo"}[r.IntN(4)]}
	switch r.IntN(4) {
	case 0:
		w.Computed = true
	case 1, 2:
		w.Limit = time.Duration(1+r.IntN(lookEnd)) * time.Millisecond
	}
	w.FromFirst = (w.Computed || w.Limit > 0) && r.IntN(2) == 0
	return w
}
