package queue

import (
	"cmp"
	"slices"
)

// cancel, resolve and the sweep: what is done to tasks without holding them.

func (m *model) cancel(call, reason, id string) string {
	defer m.done()
	t := m.touch(id)
	switch {
	case t == nil:
		return "MISSING"
	case t.lives() && t.cancelled != 0:
		return "CANCELLING " + zeroless(t.grace)
	case t.status == Running && t.given["cancel_grace_ms"] != "":
		t.cancelledBy, t.cancelled, t.cancelReason = call, m.now, reason
		t.grace = m.now + t.ms("cancel_grace_ms")
		if t.final() != 0 {
			t.grace = min(t.grace, t.final())
		}
		m.tell("task_cancelling", id)
		return "CANCELLING " + zeroless(t.grace)
	case t.lives():
		t.call = call
		m.endCancelled(t, m.now, reason)
		return "CANCELLED"
	case t.status == Cancelled && (t.call == call || t.cancelledBy == call):
		return "CANCELLED"
	}
	m.refuse(t, "cancel", "")
	return "ALREADY " + string(t.status) + " " + cmp.Or(t.result, t.failure)
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
		m.end(t, modelEnding{status: Completed, at: m.now, result: note})
	} else {
		m.end(t, modelEnding{status: Failed, at: m.now, reason: "rejected", failure: note})
	}
	return "OK " + string(t.status)
}

func (m *model) sweep() {
	defer m.done()
	claims := map[string][]*modelTask{} // as they are before this call
	for worker := range m.workers {
		claims[worker] = m.held(worker)
	}
	if ids := due(m.drain, m.now); len(ids) > 0 {
		m.drainChildren(ids[0])
	}
	for _, id := range due(m.clock(func(t *modelTask) int64 { return t.deadline }), m.now-1) {
		m.touch(id)
	}
	for _, id := range due(m.clock((*modelTask).nearest), m.now-1) {
		if t := m.touch(id); t.lives() && t.warn != 0 && t.warn < m.now {
			t.warn = 0
			m.tell("deadline_near", id)
		}
	}
	if ids := due(m.workers, m.now-1); len(ids) > 0 {
		m.abandon(ids[0], claims[ids[0]])
	}
	for _, id := range due(m.clock(func(t *modelTask) int64 { return t.available }), m.now) {
		if t := m.touch(id); t.status == Pending {
			t.available = 0
			m.ready(t, false)
		}
	}
	for _, queue := range due(m.throttled, m.now) {
		delete(m.throttled, queue)
		m.woken[queue] = true
	}
	m.tidy()
}

// nearest is the next instant at which something happens that is not the deadline.
func (t *modelTask) nearest() (first int64) {
	for _, at := range []int64{t.limit, t.warn, t.grace} {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// drainChildren ends what an ended task left behind, and starts its retention.
func (m *model) drainChildren(owner string) {
	for _, id := range m.tasks[owner].children {
		if t := m.tasks[id]; t.lives() {
			m.touch(id)
		} else if _, leaving := m.goes[id]; t != nil && !leaving {
			m.retain(t)
		}
	}
	m.tasks[owner].children = nil
	delete(m.drain, owner)
}

// abandon gives back what a worker held whose lease is over, the oldest in front.
func (m *model) abandon(worker string, claims []*modelTask) {
	for _, t := range slices.Backward(claims) {
		if m.touch(t.id); t.status == Running {
			m.giveBack(t, true)
		}
	}
	delete(m.workers, worker)
	delete(m.fetched, worker)
}

// tidy removes records and forgets idempotency keys.
func (m *model) tidy() {
	for _, id := range due(m.goes, m.now) {
		if _, draining := m.drain[id]; draining {
			m.goes[id] = m.now + 1000
			continue
		}
		delete(m.tasks, id)
		delete(m.goes, id)
		m.removed[id] = true
	}
	for _, key := range due(m.forget, m.now) {
		delete(m.keys, key)
		delete(m.forget, key)
	}
}
