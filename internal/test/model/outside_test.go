package model

import (
	"cmp"
	"slices"

	"github.com/curfew-dev/curfew/queue"
)

// Operations on tasks by callers that do not hold them: cancel, resolve and the sweep.

func (m *model) cancel(call, reason, id string) string {
	defer m.done()
	t := m.touch(id)
	switch {
	case t == nil:
		return "MISSING"
	case t.lives() && t.cancelled != 0:
		return "CANCELLING " + zeroless(t.grace)
	case t.status == queue.Running && t.given["cancel_grace_ms"] != "":
		m.spare(t, "cancelled", reason, call)
		return "CANCELLING " + zeroless(t.grace)
	case t.lives():
		t.call = call
		m.endCancelled(t, m.now, reason)
		return "CANCELLED"
	case t.status == queue.Cancelled && (t.call == call || t.cancelledBy == call):
		return "CANCELLED"
	}
	m.refuse(t, "cancel", "")
	return "ALREADY " + string(t.status) + " " + cmp.Or(t.result, t.failure)
}

// spare gives the handler of a cancelled task its grace.
func (m *model) spare(t *modelTask, reason, text, call string) {
	t.cancelledBy, t.cancelled, t.reason, t.cancelReason = call, m.now, reason, text
	t.grace = m.now + t.ms("cancel_grace_ms")
	if t.final() != 0 {
		t.grace = min(t.grace, t.final())
	}
	m.emit("task_cancelling", t.id)
}

func (m *model) resolve(call, verb, id, note string) string {
	defer m.done()
	t := m.touch(id)
	switch {
	case t == nil:
		return "MISSING"
	case t.given["role"] == "":
		return "INVALID id"
	case !t.lives() && t.call == call:
		return "OK " + string(t.status)
	case !t.lives():
		op := "resolve"
		if verb == "fail" {
			op = "reject"
		}
		m.refuse(t, op, "")
		return "ALREADY " + string(t.status) + " " + cmp.Or(t.result, t.failure)
	}
	t.call = call
	if verb == "complete" {
		m.end(t, modelEnding{status: queue.Completed, at: m.now, result: note})
	} else {
		m.end(t, modelEnding{status: queue.Failed, at: m.now, reason: "rejected", failure: cmp.Or(note, "Promise rejected")})
	}
	return "OK " + string(t.status)
}

// sweepBatch is the most entries of a clock that a sweep takes.
const sweepBatch = 100

func (m *model) sweep() {
	for left, ids := sweepBatch, batch(m.drain, m.now); left > 0 && len(ids) > 0; ids = ids[1:] {
		left -= m.drainChildren(ids[0], left)
	}
	m.done() // each clock is a unit of work
	for _, id := range batch(m.clock(func(t *modelTask) int64 { return t.deadline }), m.now-1) {
		m.touch(id)
	}
	m.done()
	for _, id := range batch(m.clock((*modelTask).nearest), m.now-1) {
		if t := m.touch(id); t.lives() && t.warn != 0 && t.warn < m.now {
			t.warn = 0
			m.emit("deadline_near", id)
		}
	}
	m.done()
	for _, id := range batch(m.clock(func(t *modelTask) int64 { return t.available }), m.now) {
		if t := m.touch(id); t.status == queue.Pending && t.available <= m.now {
			t.readyAt, t.available = t.available, 0
			m.ready(t, false, t.readyAt, t.limit)
		}
	}
	m.done()
	for _, id := range batch(m.waits, m.now-1) {
		m.waited(id)
	}
	m.done()
	claims := m.claims()
	if ids := batch(m.workers, m.now-1); len(ids) > 0 {
		m.abandon(ids[0], claims[ids[0]])
	}
	m.done()
	for _, line := range batch(m.throttled, m.now) {
		delete(m.throttled, line)
		m.woken[line] = true
	}
	m.done()
	m.tidy()
	m.done()
}

// claims returns the tasks that each worker holds.
func (m *model) claims() map[string][]*modelTask {
	claims := map[string][]*modelTask{}
	for worker := range m.workers {
		claims[worker] = m.held(worker)
	}
	return claims
}

// batch returns the entries of a clock that one sweep takes.
func batch(clock map[string]int64, until int64) []string {
	ids := due(clock, until)
	return ids[:min(len(ids), sweepBatch)]
}

// nearest returns the next instant at which something other than the deadline falls due.
func (t *modelTask) nearest() (first int64) {
	for _, at := range []int64{t.limit, t.warn, t.grace} {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// drainChildren ends live children of an ended task, and starts the retention of the others. It
// returns how many children it took.
func (m *model) drainChildren(owner string, most int) int {
	t := m.tasks[owner]
	children := t.children[:min(len(t.children), most)]
	for _, id := range children {
		if t := m.tasks[id]; t.lives() {
			m.touch(id)
		} else if _, leaving := m.goes[id]; t != nil && !leaving {
			m.retain(t)
		}
	}
	if t.children = t.children[len(children):]; len(children) < most {
		delete(m.drain, owner)
	}
	return len(children)
}

// abandon gives back the claims of a worker whose lease is over, the oldest in front.
func (m *model) abandon(worker string, claims []*modelTask) {
	for _, t := range slices.Backward(claims) {
		if m.touch(t.id); t.status == queue.Running {
			m.giveBack(t, true)
		}
	}
	m.dismiss(worker)
}

// dismiss removes a worker.
func (m *model) dismiss(worker string) {
	delete(m.workers, worker)
	delete(m.fetched, worker)
	delete(m.lacks, worker)
	delete(m.lacksAt, worker)
	delete(m.handles, worker)
	delete(m.alone, worker)
	delete(m.suspects, worker)
}

// hooked returns the id of a hook of the task that has not ended, or "" if all have ended.
func (m *model) hooked(t *modelTask) string {
	for _, event := range []string{"success", "failure", "timeout", "cancel"} {
		if h := m.tasks[t.id+"!"+event]; h != nil && h.lives() {
			return h.id
		}
	}
	return ""
}

// tidy removes records and idempotency keys.
func (m *model) tidy() {
	for _, id := range batch(m.goes, m.now) {
		if _, draining := m.drain[id]; draining || m.hooked(m.tasks[id]) != "" {
			m.goes[id] = m.now + 1000
			continue
		}
		m.remove(id)
	}
	for _, key := range batch(m.forget, m.now) {
		delete(m.keys, key)
		delete(m.forget, key)
	}
}
