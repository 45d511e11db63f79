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
	agent     queue.Task
	stale     []int // the instants at which a worker that holds nothing reports on every task, in the play with stale reports
	wait      claim.Wait
	from      int // the instant from which the wait's limit counts; -1: none is given
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

// lookRand draws instants that are multiples of grid, so that a coarse grid draws many equal ones.
type lookRand struct {
	*rand.Rand
	grid int
}

// span draws a number of ms from 1 to lookEnd.
func (r lookRand) span() int { return (1 + r.IntN(lookEnd/r.grid)) * r.grid }

func (r lookRand) ms() time.Duration { return time.Duration(r.span()) * time.Millisecond }

func (r lookRand) instant() int { return r.IntN(lookEnd/r.grid) * r.grid }

func (r lookRand) often() bool { return r.IntN(2) == 0 }

// drawLook draws a plan. It uses few instants, so that they are close to each other. In two of three plans many are equal.
func drawLook(random *rand.Rand, partitions int) lookPlan {
	r := lookRand{random, []int{1, 10, 40}[random.IntN(3)]}
	p := lookPlan{partition: r.IntN(partitions), begins: r.IntN([]int{20, lookEnd / 2}[random.IntN(2)]) / r.grid * r.grid, agent: queue.Task{Kind: "agent", Queue: "agents"}}
	for _, limit := range []*time.Duration{&p.agent.Timeout, &p.agent.AttemptTimeout, &p.agent.QueueTimeout} {
		if r.IntN(8) == 0 {
			*limit = r.ms()
		}
	}
	for i := range 1 + r.IntN(6) {
		p.members = append(p.members, drawLookMember(r, i))
	}
	p.wait, p.from = drawLookWait(r, len(p.members)), -1
	if p.wait.Limit > 0 && !p.wait.FromFirst && r.often() {
		p.from = r.IntN(p.begins+1) / r.grid * r.grid
	}
	for range r.IntN(2 * len(p.members)) {
		act := lookAct{at: r.instant(), member: r.IntN(len(p.members))}
		act.op = []string{"complete", "complete", "fail", "discard", "cancel"}[r.IntN(5)]
		p.acts = append(p.acts, act)
	}
	if r.IntN(25) == 0 {
		p.acts = append(p.acts, lookAct{at: max(p.begins, r.instant()), op: "stop"})
	}
	slices.SortStableFunc(p.acts, func(a, b lookAct) int { return a.at - b.at })
	for range 1 + r.IntN(3) {
		p.looks = append(p.looks, r.instant()+r.IntN(2))
		p.stale = append(p.stale, r.instant()+r.IntN(2))
	}
	return p
}

func drawLookMember(r lookRand, i int) lookMember {
	m := lookMember{name: fmt.Sprint(i + 1), sort: []string{"promise", "timer", "line", "run", "run", "signal"}[r.IntN(6)], late: r.IntN(4) == 0}
	m.task = queue.Task{Kind: "k", Queue: "line"}
	if m.sort != "signal" && r.often() {
		m.task.Timeout = r.ms()
		m.task.OnDeadline = []queue.OnDeadline{"", queue.DeadlineFail}[r.IntN(2)]
	}
	switch m.sort {
	case "promise":
		m.task.Promise = true
	case "signal":
		m.name, m.task = fmt.Sprint("s-", i+1), queue.Task{Kind: "signal", Queue: "agents", Promise: true}
	case "timer":
		m.task.Timer, m.task.Delay = true, r.ms()
		if m.task.Timeout > 0 && m.task.Timeout < m.task.Delay {
			m.task.Timeout += m.task.Delay
		}
	case "line":
		m.task.Priority = r.IntN(4)
		if r.often() {
			m.task.QueueTimeout = r.ms()
		}
		if r.IntN(3) == 0 && m.task.Timeout == 0 {
			m.task.Delay = r.ms()
		}
	case "run":
		m.late, m.task.Queue, m.task.Priority = false, "run", r.IntN(4)
		if r.often() {
			m.task.AttemptTimeout = r.ms()
		}
		if r.IntN(4) == 0 {
			m.task.OnTimeout, m.task.MaxRetries = queue.OnTimeoutRetry, 1+r.IntN(2)
			m.task.Backoff.Delay = []time.Duration{queue.None, time.Duration(r.grid) * time.Millisecond}[r.IntN(2)]
			if r.often() {
				m.task.QueueTimeout = r.ms()
			}
		}
		if r.IntN(4) == 0 {
			m.task.CancelGrace = time.Duration(1+r.IntN(20)) * time.Millisecond
		}
	}
	if m.sort != "signal" && r.IntN(4) == 0 && (m.task.CancelGrace == 0 || r.IntN(10) == 0) {
		m.within = r.span()
	}
	m.mask = []string{"", "", "", "", "ooooo", "obbbn", "bnooo"}[r.IntN(7)]
	return m
}

func drawLookWait(r lookRand, n int) claim.Wait {
	modes := []queue.Mode{queue.WaitAll, queue.WaitFailFast, queue.WaitSettled, queue.WaitAny, queue.WaitAnyOK, queue.WaitNOfM, queue.WaitNSettled}
	w := claim.Wait{Entry: 1, Mode: modes[r.IntN(len(modes))], Digest: "d", Label: "l", Need: 1 + r.IntN(n), Proceed: r.IntN(2) == 0,
		KeepPending: r.IntN(2) == 0, CancelLosers: r.IntN(2) == 0, Mask: []string{"obbbb", "obbbb", "obbbn", "ooooo"}[r.IntN(4)]}
	switch r.IntN(4) {
	case 0:
		w.Computed = true
	case 1, 2:
		w.Limit = r.ms()
	}
	w.FromFirst = (w.Computed || w.Limit > 0) && r.IntN(2) == 0
	return w
}
