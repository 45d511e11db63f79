package model

import (
	"math"
	"slices"
	"strconv"
	"strings"

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
	room     int            // for suspects that need not be alone
	suspects []modelSuspect // that the worker holds
	alone    bool
	waits    bool
	shared   map[string]bool // queues of which it got a suspect and that have more
	take     func(*modelTask) bool
}

// modelSuspect is a suspect that a worker holds, and when it has run for long enough. Its id is - if the worker waits for its last task.
type modelSuspect struct {
	id   string
	long int64
}

func (s modelSuspect) String() string {
	if s.long == 0 {
		return s.id
	}
	return s.id + " " + strconv.FormatInt(s.long, 10)
}

func formatSuspects(list []modelSuspect) string {
	var words []string
	for _, s := range list {
		words = append(words, s.String())
	}
	return strings.Join(words, " ")
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
	return m.has(g, line, end) && m.room(line) > 0
}

// has is canGive of a queue without limits.
func (m *model) has(g *modelGrant, line, end string) bool {
	known := func(t *modelTask) bool { return m.heldBefore[t.heldSet()] > 0 }
	return slices.ContainsFunc(m.fitting(g.worker, line, end), known)
}

// holds reports whether a worker holds a suspect, and has not held it for long.
func (m *model) holds(worker string, s modelSuspect) bool {
	t := m.tasks[s.id]
	return t != nil && t.status == queue.Running && t.worker == worker && s.long > m.now
}

func (m *model) restFor(ms int64) { m.isolation.worker, m.isolation.freeAt = "", m.now+ms }

// patience returns for how many ms a worker takes no tasks before it holds none.
func (m *model) patience() int64 { return max(60_000, (m.now-m.isolation.wanted)/10) }

// isAlone reports whether a worker holds a suspect alone.
func (m *model) isAlone(worker string) bool {
	i, s := &m.isolation, m.alone[worker]
	if s.id == "" || s.id == "-" {
		return false
	}
	if m.holds(worker, s) {
		return true
	}
	delete(m.alone, worker)
	if i.worker == worker {
		i.wanted = 0
		m.restFor(max(m.now-i.since, 0))
	}
	return false
}

// isolate decides whether the worker gets nothing now, or one suspect alone.
func (m *model) isolate(g *modelGrant) {
	i := &m.isolation
	if m.isAlone(g.worker) {
		g.alone, g.left = true, 0
		return
	}
	open := false
	for _, quota := range g.ask.Quotas {
		open = open || m.canGive(g, quota.Queue, "alone")
	}
	if !open {
		if m.alone[g.worker].id == "-" {
			delete(m.alone, g.worker)
			if i.worker == g.worker {
				i.worker, i.wanted = "", 0
			}
		}
		return
	}
	if g.ask.Rests && m.alone[g.worker].id != "-" {
		return
	}
	drains := m.company(g) > 0
	switch lease, lives := m.workers[i.worker]; {
	case i.worker == g.worker:
		if drains && m.now-i.since > m.patience() {
			delete(m.alone, g.worker)
			m.restFor(10 * m.patience())
			return
		}
	case i.worker != "":
		if lives && lease >= m.now && m.now-i.since <= m.patience()+600_000 {
			return
		}
	case i.freeAt > m.now:
		return
	}
	if drains {
		m.beginAlone(g, modelSuspect{id: "-"})
		g.alone, g.left = true, 0
	} else {
		m.takeAlone(g, true)
	}
}

// beginAlone makes the worker the one that isolates itself.
func (m *model) beginAlone(g *modelGrant, s modelSuspect) {
	m.alone[g.worker] = s
	if i := &m.isolation; i.worker != g.worker {
		if i.wanted == 0 || m.now-i.freeAt >= max(60_000, i.freeAt-i.wanted) {
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
	for _, s := range m.suspects[g.worker] {
		if m.holds(g.worker, s) {
			g.suspects = append(g.suspects, s)
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
