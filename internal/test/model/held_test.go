package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// How tasks are held that no live worker can run. The workers of the model do not describe themselves: each may have a handler for
// any kind, until it has given a task of the kind back.

// heldSet returns the set in which a task is held.
func (t *modelTask) heldSet() string { return t.queue() + "," + t.given["kind"] }

// heldIn returns the tasks of a set, in the order of the places that they keep.
func (m *model) heldIn(set string) []*modelTask {
	var held []*modelTask
	for _, t := range m.tasks {
		if t.isHeld() && t.heldSet() == set {
			held = append(held, t)
		}
	}
	slices.SortFunc(held, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(b.ms("priority"), a.ms("priority")), cmp.Compare(a.place, b.place))
	})
	return held
}

func (t *modelTask) isHeld() bool { return t.status == queue.Pending && t.heldAt != 0 }

// fits reports whether a worker may have a handler for the tasks of a set.
func (m *model) fits(worker, set string) bool {
	_, kind, _ := strings.Cut(set, ",")
	return m.workers[worker] >= m.now && !strings.Contains(m.lacks[worker], " "+kind+" ")
}

// anyFits reports whether a live worker but one fits a set.
func (m *model) anyFits(set, but string) bool {
	for worker := range m.workers {
		if worker != but && m.fits(worker, set) {
			return true
		}
	}
	return false
}

// passes reports whether a task that a worker gives back goes back in line, and is not held. A call decides once for each set.
func (m *model) passes(set, worker string) bool {
	if _, known := m.passed[set]; !known {
		m.passed[set] = m.heldBefore[set] == 0 && m.anyFits(set, worker)
	}
	return m.passed[set]
}

// learn notes that a worker has no handler for a kind.
func (m *model) learn(worker, kind string) {
	if _, known := m.workers[worker]; known && !strings.Contains(m.lacks[worker], " "+kind+" ") {
		m.lacks[worker] = cmp.Or(m.lacks[worker], " ") + kind + " "
	}
}

// hold holds a task. If line is not 0, its time in line is over at that instant.
func (m *model) hold(t *modelTask, line int64) {
	m.emit("task_held", t.id)
	m.endAttempt(t)
	t.held, t.heldAt = "unhandled", m.now
	if span := t.ms("queue_timeout_ms"); span != 0 && line == 0 {
		line = m.now + span
	}
	m.setLimit(t, line)
	m.seq++
	t.place = m.seq
	if _, listed := m.holds[t.heldSet()]; !listed {
		m.holds[t.heldSet()] = m.now + 30_000
	}
}

// unhold puts tasks of a set back in line, and returns how many it has looked at.
func (m *model) unhold(set string, most int) int {
	held := m.heldIn(set)
	held = held[:min(len(held), most)]
	for _, t := range held {
		if m.touch(t.id); t.isHeld() {
			t.held, t.heldAt, t.readyAt = "", 0, m.now
			m.woken[t.queue()], m.fresh[t.id] = true, true
			m.emit("task_unheld", t.id)
		}
	}
	if len(held) < most {
		delete(m.holds, set)
	}
	return len(held)
}

// offer puts held tasks back in line for a worker that got no task.
func (m *model) offer(worker string, ask claim.Ask) {
	most := 8
	for _, set := range due(m.holds, 1<<60) {
		name, _, _ := strings.Cut(set, ",")
		if most > 0 && m.fits(worker, set) && slices.ContainsFunc(ask.Quotas, func(q claim.Quota) bool { return q.Queue == name }) {
			most -= m.unhold(set, most)
		}
	}
}

// sweepHeld looks at the sets that are due.
func (m *model) sweepHeld() {
	for _, set := range batch(m.holds, m.now) {
		switch {
		case m.heldBefore[set] == 0:
			delete(m.holds, set)
		case m.anyFits(set, ""):
			m.unhold(set, sweepBatch)
		default:
			m.holds[set] = m.now + 30_000
		}
	}
}

// countHeld counts the held tasks at the end of a unit of work: the next one begins with them.
func (m *model) countHeld() {
	clear(m.passed)
	clear(m.heldBefore)
	for _, t := range m.tasks {
		if t.isHeld() {
			m.heldBefore[t.heldSet()]++
		}
	}
}
