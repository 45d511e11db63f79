package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// line returns the tasks in line of a queue, in order.
func (m *model) line(name string) []*modelTask {
	var line []*modelTask
	for _, t := range m.tasks {
		if t.queue() == name && t.status == queue.Pending && t.available == 0 && !t.isHeld() && t.given["role"] == "" && !m.fresh[t.id] {
			line = append(line, t)
		}
	}
	slices.SortFunc(line, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(b.ms("priority"), a.ms("priority")), cmp.Compare(a.place, b.place))
	})
	return line
}

// held returns the tasks that a worker holds, in the order of its claims.
func (m *model) held(worker string) []*modelTask {
	var held []*modelTask
	for _, t := range m.tasks {
		if t.status == queue.Running && t.worker == worker {
			held = append(held, t)
		}
	}
	slices.SortFunc(held, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(a.claim, b.claim), cmp.Compare(a.id, b.id))
	})
	return held
}

func (m *model) fetch(worker string, ask claim.Ask) (got []string, more bool, hint string) {
	defer m.done()
	m.workers[worker] = m.now + ask.Lease.Milliseconds()
	tell := func(t *modelTask) { got = append(got, formatClaim(t.id, t.epoch, t.payload)) }
	if ask.Seq <= m.fetched[worker] {
		for _, t := range m.held(worker) {
			if t.claim == ask.Seq && m.touch(t.id).status == queue.Running {
				tell(t)
			}
		}
		if m.isAlone(worker) {
			return got, false, "alone"
		}
		return got, false, ""
	}
	g := &modelGrant{worker: worker, ask: ask, left: ask.N, shared: map[string]bool{}}
	g.take = func(t *modelTask) bool {
		if m.touch(t.id); t.status != queue.Pending || t.available != 0 || m.fresh[t.id] {
			return false
		}
		if t.heldAt != 0 && t.losses > 0 {
			m.suspect(t)
			return false
		}
		if t.losses > 0 {
			long := int64(60_000)
			if t.losses > 2 {
				long = 600_000
			}
			g.suspects, g.shared[t.queue()] = append(g.suspects, modelSuspect{t.id, m.now + long}), true
		}
		m.claim(t, worker, ask.Seq)
		tell(t)
		g.left--
		return true
	}
	g.room = m.roomForSuspects(g)
	m.isolate(g)
	for round := range 2 {
		for _, quota := range ask.Quotas {
			want := g.left
			if round == 0 {
				want = min(quota.N, g.left)
			}
			if g.left > 0 {
				m.room(quota.Queue) // also of an empty line: its bucket may be too late
			}
			few := m.draw(g, quota.Queue, m.fitting(worker, quota.Queue, "few"), min(want, g.room))
			g.room -= few
			m.draw(g, quota.Queue, append(m.fitting(worker, quota.Queue, ""), m.line(quota.Queue)...), want-few)
		}
	}
	if len(got) == 0 && g.left > 0 && m.company(g) == 0 {
		m.takeAlone(g, false)
	}
	m.keepSuspects(g)
	if len(got) > 0 {
		m.fetched[worker] = ask.Seq // a fetch that gave nothing can be repeated
	}
	for _, quota := range ask.Quotas {
		more = more || !g.alone && len(m.fitting(worker, quota.Queue, "")) > 0 && m.room(quota.Queue) > 0
		few := m.has(g, quota.Queue, "few")
		shared := g.shared[quota.Queue] || m.room(quota.Queue) < 1
		g.shared[quota.Queue] = shared && (few || m.has(g, quota.Queue, "alone"))
		g.waits = g.waits || few
	}
	m.done()
	for _, quota := range ask.Quotas {
		more = m.passOn(quota.Queue, g.shared[quota.Queue]) || more
	}
	switch {
	case g.alone:
		return got, false, "alone"
	case g.waits && !more:
		return got, false, "waits"
	}
	return got, more, ""
}

// draw gives up to `want` of these tasks of a queue to a worker, and returns how many it gave.
func (m *model) draw(g *modelGrant, line string, tasks []*modelTask, want int) (given int) {
	for _, t := range tasks {
		if given >= want || g.left == 0 || m.room(line) < 1 {
			break
		}
		if g.take(t) {
			given++
		}
	}
	return given
}

func (m *model) claim(t *modelTask, worker string, seq int64) {
	if t.lineAt = 0; t.ms("queue_timeout_ms") != 0 && !t.attempted() {
		t.lineAt = t.limit
	}
	t.status, t.worker, t.lostBy, t.releaseReason, t.claim = queue.Running, worker, "", "", seq
	if t.heldAt != 0 {
		t.held, t.heldAt, m.heldClaims = "", 0, m.heldClaims+1
	}
	t.epoch++
	if t.epoch == 1 && t.given["idempotency_scope"] == "started" {
		delete(m.keys, t.given["idempotency_key"])
	}
	var instant int64
	switch span := t.ms("attempt_timeout_ms"); {
	case t.woken: // its attempt continues
		instant, t.attemptAt, t.woken = t.attemptAt, 0, false
	default:
		t.started = m.now
		if span != 0 {
			instant = m.now + span
		}
	}
	m.setLimit(t, instant)
	m.spend(t.queue())
	m.emit("task_started", t.id)
}

func (m *model) settle(worker, call string, outcomes []queue.Outcome) (verdicts []string) {
	defer m.done()
	reported := map[string]bool{}
	for _, o := range outcomes {
		verdict := m.settleOne(worker, call, o, reported[o.ID])
		reported[o.ID] = reported[o.ID] || strings.HasPrefix(verdict, "OK")
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// settleOne is for one outcome. reported says that the call has reported about the task before.
func (m *model) settleOne(worker, call string, o queue.Outcome, reported bool) string {
	t := m.touch(o.ID)
	if t == nil {
		return "MISSING "
	}
	mark := fmt.Sprint(o.Epoch, " ", call)
	if t.requeuedBy == mark && !reported {
		return "OK PENDING"
	}
	if t.call == call && t.epoch == o.Epoch && t.worker == worker && !reported {
		return "OK " + string(t.status)
	}
	if t.epoch != o.Epoch || !(t.status == queue.Running && t.worker == worker || t.status == queue.Pending && t.lostBy != "" && t.lostBy == worker) {
		m.refuse(t, string(o.Verb), fmt.Sprint(o.Epoch))
		if t.timeoutType != "" && t.lateBy != call {
			t.lateBy = call
			m.count(t, "late", 1)
		}
		return "LOST " + string(t.status)
	}
	delay := o.Delay.Milliseconds()
	t.worker = worker // its lease may be lost
	switch {
	case t.cancelled != 0:
		t.call = call
		m.endCancelled(t, m.now, t.cancelReason)
	case o.Verb == queue.Complete:
		t.call = call
		m.end(t, modelEnding{status: queue.Completed, at: m.now, result: string(o.Result)})
	case o.Verb == queue.Release:
		m.release(t, worker, o.Class == queue.ClassNoHandler, delay)
		t.requeuedBy, t.releaseReason = mark, o.Error
	default:
		if o.Class == queue.ClassDeadline && t.final() != 0 {
			t.call = call
			m.timeOut(t, m.now, map[bool]string{true: "workflow", false: "execution"}[t.until != 0])
			break
		}
		if o.Class == queue.ClassDeadline {
			o.Class = queue.ClassError
		}
		if delay == 0 {
			delay = backOff
		}
		m.attemptFailed(t, modelFailure{class: o.Class, verdict: o.Retry, text: o.Error, code: zeroless(int64(o.Code)),
			call: call, mark: mark, since: m.now, delay: delay})
	}
	return "OK " + string(t.status)
}

// release gives a task back. If the worker has no handler for its kind, the time in line continues.
func (m *model) release(t *modelTask, worker string, unhandled bool, delay int64) {
	if !unhandled {
		m.emit("task_released", t.id)
		m.requeue(t, m.now+delay, true, 0)
		return
	}
	line, passed := t.lineAt, t.passedOn
	if line == 0 && !t.attempted() {
		line = t.limit
	}
	m.learn(worker, t.given["kind"])
	if !m.passes(t, worker) {
		m.hold(t, line)
		return
	}
	m.emit("task_released", t.id)
	m.requeue(t, m.now+min(cmp.Or(delay, 1000), 10<<min(passed, 10)), true, line)
	t.passedOn = passed + 1
}

func (m *model) heartbeat(worker string, lease, known int64, held []claim.Held) []string {
	defer m.done()
	var stops []string
	mine, claims := map[string]bool{}, m.held(worker)
	for _, h := range held {
		mine[h.ID] = true
		t := m.touch(h.ID)
		switch {
		case t == nil:
			stops = append(stops, h.ID+" gone")
		case !t.lives() && t.timeoutType != "":
			stops = append(stops, h.ID+" timeout")
		case !t.lives():
			stops = append(stops, h.ID+" "+strings.ToLower(string(t.status)))
		case t.epoch != h.Epoch || t.status == queue.Running && t.worker != worker:
			stops = append(stops, h.ID+" lost")
		case t.status == queue.Pending && t.lostBy != worker:
			stops = append(stops, h.ID+" released")
		case t.cancelled != 0:
			stops = append(stops, h.ID+" cancelling")
		case t.status == queue.Running && h.Progress != "" && (t.progress != h.Progress || t.progressAt < t.started):
			t.progress, t.progressAt = h.Progress, m.now
		}
	}
	for _, t := range slices.Backward(claims) {
		if lease == 0 || t.claim <= known && !mine[t.id] {
			if m.touch(t.id); t.status == queue.Running {
				m.giveBack(t, false)
			}
		}
	}
	if lease > 0 {
		m.workers[worker] = m.now + lease
	} else {
		m.dismiss(worker)
	}
	return stops
}
