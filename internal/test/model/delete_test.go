package model

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/names"
)

// delete removes the record of an ended task before its retention is over.
func (m *model) delete(id string) string {
	defer m.done()
	late := m.tasks[id].lives() // and ends now
	t := m.touch(id)
	owner := names.OwnerOf(id)
	_, drains := m.drain[id]
	_, ownerDrains := m.drain[owner]
	switch {
	case t == nil:
		return "MISSING"
	case t.lives():
		return "LIVE " + string(t.status)
	case m.tasks[owner].lives():
		return "OWNED " + owner
	case drains:
		return "DRAINING " + id
	case ownerDrains:
		return "DRAINING " + owner
	case m.hooked(t) != "":
		return "HOOKED " + m.hooked(t)
	}
	ended := max(t.created, t.completed, t.detected)
	if late {
		ended = m.now
	}
	goes := max(ended+60_000, m.now)
	m.forgetSooner(t, ended, goes)
	if goes > m.now {
		m.goes[id] = goes
		return fmt.Sprint("LATER ", goes)
	}
	m.remove(id)
	return "DELETED"
}

// forgetSooner sets when the idempotency key of a task is free, now that its record goes before its retention is over.
func (m *model) forgetSooner(t *modelTask, ended, goes int64) {
	name := t.given["idempotency_key"]
	at, leaving := m.forget[name]
	switch {
	case name == "" || t.given["idempotency_scope"] != "" || !leaving:
	case at <= m.now:
		delete(m.keys, name)
		delete(m.forget, name)
	case m.keys[name].id == t.id:
		m.forget[name] = min(at, max(ended+24*3600_000, goes))
	}
}

func (p *player) delete(t *rapid.T) {
	id := p.drawID(t, func(t *modelTask) bool { return !t.lives() })
	if id == "" {
		p.enqueue(t)
		return
	}
	if rapid.Bool().Draw(t, "a minute later") {
		p.leap(t)
	}
	p.play(t, func(t *rapid.T) {
		told := p.m.delete(id)
		p.same(t, "delete "+id, join(p.run(t, "delete", id).([]any)[0].([]any)), told)
		p.seen["delete "+told[:4]]++
	})
}
