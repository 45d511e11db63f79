package model

import (
	"math"
	"slices"
	"strconv"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// How tasks are handed out whose last worker died.

// modelIsolation is the worker that takes nothing but suspects, one at a time.
type modelIsolation struct {
	worker                string
	since, freeAt, wanted int64
	used                  bool
}

// modelGrant is what a worker gets for a request.
type modelGrant struct {
	worker   string
	ask      claim.Ask
	left     int
	room     int      // for suspects that need not be alone
	suspects []string // that the worker holds
	alone    bool
	waits    bool
	shared   map[string]bool // queues of which it got a suspect and that have more
	take     func(*modelTask) bool
}

func (t *modelTask) isSuspect() bool {
	return t.status == queue.Pending && t.losses > 0 && t.available == 0 && t.heldAt == 0
}

// suspect puts a held task among the suspects.
func (m *model) suspect(t *modelTask) {
	t.held, t.heldAt = "", 0
	m.front--
	t.place = m.front
	m.fresh[t.id] = true
}

func (m *model) company(g *modelGrant) int { return len(m.held(g.worker)) + g.ask.Elsewhere }

// canGive reports whether a queue can give a suspect to the worker. The call knows the sets that had tasks when it began.
func (m *model) canGive(g *modelGrant, line, end string) bool {
	known := func(t *modelTask) bool { return m.heldBefore[t.heldSet()] > 0 }
	return slices.ContainsFunc(m.fitting(g.worker, line, end), known) && m.room(line) > 0
}

func (m *model) holds(worker, id string) bool {
	t := m.tasks[id]
	return t != nil && t.status == queue.Running && t.worker == worker
}

func (m *model) restAfter(times int64) {
	i := &m.isolation
	i.worker, i.freeAt = "", m.now+times*max(m.now-i.since, 0)
}

// isolate decides whether the worker gets nothing now, or one suspect alone.
func (m *model) isolate(g *modelGrant) {
	i := &m.isolation
	if id := m.alone[g.worker]; id != "" && id != "-" {
		if m.holds(g.worker, id) {
			g.alone, g.left = true, 0
			return
		}
		delete(m.alone, g.worker)
		if i.worker == g.worker {
			i.wanted = 0
			m.restAfter(1)
		}
	}
	open := false
	for _, quota := range g.ask.Quotas {
		open = open || m.canGive(g, quota.Queue, "alone")
	}
	if !open {
		if m.alone[g.worker] == "-" {
			delete(m.alone, g.worker)
			if i.worker == g.worker {
				i.worker, i.wanted = "", 0
			}
		}
		return
	}
	drains := m.company(g) > 0
	switch lease, lives := m.workers[i.worker]; {
	case i.worker == g.worker:
		if drains && m.now-i.since > max(60_000, (m.now-i.wanted)/10) {
			delete(m.alone, g.worker)
			m.restAfter(10)
			return
		}
	case i.worker != "":
		if !lives || lease < m.now {
			i.wanted = 0
			m.restAfter(1)
		}
		return
	case i.freeAt > m.now:
		return
	}
	if drains {
		m.beginAlone(g, "-")
		g.alone, g.left = true, 0
	} else {
		m.takeAlone(g, true)
	}
}

// beginAlone makes the worker the one that isolates itself.
func (m *model) beginAlone(g *modelGrant, id string) {
	m.alone[g.worker] = id
	if i := &m.isolation; i.worker != g.worker {
		if i.wanted == 0 || m.now-i.freeAt >= 60_000 {
			i.wanted = m.now
		}
		i.worker, i.since, i.used = g.worker, m.now, true
	}
}

func (m *model) takeAlone(g *modelGrant, mine bool) {
	for _, quota := range g.ask.Quotas {
		if g.left == 0 || g.alone {
			return
		}
		before := len(g.suspects)
		if m.draw(g, quota.Queue, m.fitting(g.worker, quota.Queue, "alone"), 1) == 1 {
			id := g.suspects[before]
			m.alone[g.worker] = id
			if mine {
				m.beginAlone(g, id)
			}
			g.alone, g.left = true, 0
		}
	}
}

func (m *model) roomForSuspects(g *modelGrant) int {
	for _, id := range m.suspects[g.worker] {
		if m.holds(g.worker, id) {
			g.suspects = append(g.suspects, id)
		}
	}
	return int(math.Ceil(math.Sqrt(float64(g.ask.N+m.company(g))))) - len(g.suspects)
}

func (m *model) keepSuspects(g *modelGrant) {
	delete(m.suspects, g.worker)
	if len(g.suspects) > 0 {
		m.suspects[g.worker] = g.suspects
	}
}

func (m *model) formatIsolation() string {
	i := m.isolation
	if !i.used {
		return ""
	}
	fields := map[string]string{"worker": i.worker}
	for name, at := range map[string]int64{"since": i.since, "free_at": i.freeAt, "wanted_at": i.wanted} {
		fields[name] = strconv.FormatInt(at, 10)
	}
	return "isolation " + formatFields(fields)
}
