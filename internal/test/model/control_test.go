package model

import (
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// modelQueue is the record of a queue.
type modelQueue struct {
	counts    map[string]int64
	controls  map[string]string
	full      int64 // when its bucket is full again, in ms times its rate, to be exact
	drainedBy string
	drained   int
	found     int
}

// list returns the record of a queue, and makes it if it does not exist.
func (m *model) list(line string) *modelQueue {
	if m.queues[line] == nil {
		m.queues[line] = &modelQueue{counts: map[string]int64{}, controls: map[string]string{}}
	}
	return m.queues[line]
}

func (q *modelQueue) control(name string) int64 { return engine.Number(q.controls[name]) }

// controlled reports whether any queue has controls.
func (m *model) controlled() bool {
	for _, q := range m.queues {
		if len(q.controls) > 0 {
			return true
		}
	}
	return false
}

// number returns how many tasks of a queue have a status.
func (m *model) number(line string, status queue.Status) (n int64) {
	for _, t := range m.tasks {
		if t.queue() == line && t.status == status {
			n++
		}
	}
	return n
}

// unlimited is the room of a queue without controls.
const unlimited = 1 << 40

// room returns how many tasks a queue can give now.
func (m *model) room(line string) int64 {
	n, _ := m.roomAndNext(line)
	return n
}

// roomAndNext returns how many tasks a queue can give now. If it lacks only a token of its rate,
// next is when it gets one.
//
// The bucket holds burst tokens. In units of 1/rate ms a token takes per_ms units to
// come back, and each ms brings rate units.
func (m *model) roomAndNext(line string) (n, next int64) {
	q := m.queues[line]
	if q == nil {
		return unlimited, 0
	}
	if q.controls["paused"] != "" {
		return 0, 0
	}
	n = unlimited
	if most := q.control("max_running"); most != 0 {
		n = max(most-m.number(line, queue.Running), 0)
	}
	if rate, token := q.control("rate"), q.control("per_ms"); rate != 0 {
		whole := q.control("burst") * token
		q.full = min(q.full, m.now*rate+whole) // the clock was set back
		missing := max(q.full-m.now*rate, 0)
		if missing > whole-token && n > 0 {
			next = ceil(m.now*rate+missing-whole+token, rate)
		}
		n = min(n, (whole-missing)/token)
	}
	return n, next
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// spend takes a token for a task that a queue gave.
func (m *model) spend(line string) {
	if q := m.queues[line]; q.controls["rate"] != "" {
		q.full = max(q.full, m.now*q.control("rate")) + q.control("per_ms")
	}
}

// wakeFor wakes one idle worker for a queue that can give a task. A queue that lacks only a token
// of its rate is put on a clock for when it gets one.
func (m *model) wakeFor(line string) {
	n, next := m.roomAndNext(line)
	if next != 0 {
		m.throttled[line] = next
	}
	if n > 0 {
		m.wake[line] = true
	}
}

// passOn leaves a token for the tasks that a fetch left in line. It reports whether one of them can be
// fetched now. A line that gives nothing needs no token, unless the worker took one of several suspects (shared).
func (m *model) passOn(line string, shared bool) (more bool) {
	delete(m.taken, line)
	stands := len(m.line(line)) > 0
	if more = stands && m.room(line) > 0; !more && !shared {
		delete(m.wake, line)
	}
	if stands || shared {
		m.woken[line] = true
	}
	return more
}

// control changes the controls of a queue; an empty value removes a control.
func (m *model) control(line string, controls map[string]string) string {
	defer m.done()
	known := 0
	if m.queues[line] != nil {
		known = 1
	}
	q := m.list(line)
	changed := false
	for name, value := range controls {
		if q.controls[name] == value {
			continue
		}
		changed = true
		if q.controls[name] = value; value == "" {
			delete(q.controls, name)
		}
		if name == "rate" || name == "per_ms" || name == "burst" {
			q.full = 0 // a new bucket is full
		}
	}
	delete(m.throttled, line)
	delete(m.wake, line)
	ready := len(m.line(line))
	if ready > 0 {
		m.woken[line] = true
	}
	if changed {
		m.emit("queue_controlled", "")
	}
	return fmt.Sprint("OK ", known, " ", ready)
}

// drainLine cancels the first tasks in a line of those that were there when seq and front were the last places.
func (m *model) drainLine(call, line string, most int, seq, front int64) string {
	defer m.done()
	q := m.queues[line]
	n, found := 0, 0
	if q != nil && q.drainedBy == call {
		n, found = q.drained, q.found
	} else {
		tasks := m.line(line)
		for _, set := range m.setsOf(line) {
			tasks = append(tasks, m.heldIn(set)...)
		}
		line := slices.DeleteFunc(tasks, func(t *modelTask) bool {
			return t.place > seq || t.place < front && t.place > -1<<47 || t.place <= -1<<47 && t.place > seq-1<<48
		})
		found = min(most, len(line))
		for _, t := range line[:found] {
			if m.touch(t.id); t.status == queue.Pending && t.available == 0 {
				t.call = call
				m.endCancelled(t, m.now, "drained")
				n++
			}
		}
		if q != nil {
			q.drainedBy, q.drained, q.found = call, n, found
		}
	}
	m.done() // the answer counts the tasks that are in line after all of it
	left := len(m.line(line))
	for _, set := range m.setsOf(line) {
		left += len(m.heldIn(set))
	}
	return fmt.Sprint("OK ", n, " ", left, " ", found)
}
