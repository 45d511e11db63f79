package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// model is the rules in plain Go: maps, one clock, no cleverness. The model test
// plays the same operations on it and on Redis, and compares the whole state.
type model struct {
	now     int64
	seq     int64 // the line's next place, and the front's
	front   int64
	tasks   map[string]*modelTask
	workers map[string]int64 // end of lease
	fetched map[string]int64 // newest seq
	drain   map[string]int64
	goes    map[string]int64
	forget  map[string]int64
	keys    map[string]string
	removed map[string]bool // ids whose record went: no id is ever drawn again
}

type modelTask struct {
	id, queue, payload, key                         string
	status                                          Status
	priority                                        int
	created, deadline, until, limit, available      int64
	queueTimeout, attemptTimeout, retention         int64
	place, claim                                    int64 // in its line; the seq of the fetch that claimed it
	epoch, retries, maxRetries, losses              int64
	worker, lostBy, call, requeuedBy                string
	started, completed, detected                    int64
	result, failure, lastError, reason, timeoutType string
	children                                        []string // not yet drained
	hadChildren                                     bool
}

func newModel(now int64) *model {
	return &model{now: now, tasks: map[string]*modelTask{}, workers: map[string]int64{}, fetched: map[string]int64{},
		drain: map[string]int64{}, goes: map[string]int64{}, forget: map[string]int64{}, keys: map[string]string{}, removed: map[string]bool{}}
}

func (t *modelTask) lives() bool { return t != nil && !t.status.Ended() }

func parentOf(id string) string {
	if at := strings.LastIndexByte(id, '.'); at >= 0 {
		return id[:at]
	}
	return ""
}

// touch ends a task whose time is up, whatever it is touched for.
func (m *model) touch(id string) *modelTask {
	t := m.tasks[id]
	if !t.lives() {
		return t
	}
	type instant struct {
		at   int64
		kind string
	}
	var first *instant
	consider := func(at int64, kind string, due bool) {
		if due && (first == nil || at < first.at) {
			first = &instant{at, kind}
		}
	}
	for i, c := range id { // outermost first
		if c == '.' {
			at, draining := m.drain[id[:i]]
			kind := "owner"
			if a := m.tasks[id[:i]]; a != nil && a.timeoutType != "" {
				kind = "workflow"
			}
			consider(at, kind, draining)
		}
	}
	consider(t.until, "workflow", t.until != 0 && t.until < m.now)
	consider(t.deadline, "execution", t.deadline != 0 && t.deadline < m.now)
	limit := "attempt"
	if t.status == Pending {
		limit = "queue"
	}
	consider(t.limit, limit, t.limit != 0 && t.limit < m.now)
	switch {
	case first == nil:
	case first.kind == "owner":
		m.end(t, Cancelled, first.at)
		t.failure, t.reason = "Owner ended", "owner_ended"
	default:
		m.end(t, Failed, first.at)
		t.failure, t.reason, t.timeoutType, t.detected = "Task exceeded deadline", "timeout", first.kind, m.now
	}
	return t
}

func (m *model) end(t *modelTask, status Status, at int64) {
	t.status, t.completed = status, at
	if t.hadChildren {
		m.drain[t.id] = at
	}
	if p := parentOf(t.id); p == "" || !m.tasks[p].lives() {
		m.retain(t)
	}
}

func (m *model) retain(t *modelTask) {
	span := int64(7 * 24 * 3600_000)
	if t.status == Completed {
		span = 15 * 60_000
	}
	if t.retention != 0 {
		span = t.retention
	}
	m.goes[t.id] = m.now + max(span, 60_000)
	if t.key != "" {
		m.forget[t.key] = max(m.goes[t.id], m.now+24*3600_000)
	}
}

// setLimit keeps the next non-final instant, unless the end precedes it.
func (m *model) setLimit(t *modelTask, span int64) {
	final := t.until
	if final == 0 {
		final = t.deadline
	}
	t.limit = 0
	if span != 0 && (final == 0 || m.now+span < final) {
		t.limit = m.now + span
	}
}

func (m *model) ready(t *modelTask, front bool) {
	if front {
		m.front--
		t.place = m.front
	} else {
		m.seq++
		t.place = m.seq
	}
	m.setLimit(t, t.queueTimeout)
}

func (m *model) enqueue(n modelTask) string {
	if old := m.tasks[n.id]; old != nil {
		if old.queue == n.queue && old.payload == n.payload {
			return "OK " + n.id
		}
		return "TAKEN " + n.id
	}
	if id, known := m.keys[n.key]; n.key != "" && known {
		id, payload, _ := strings.Cut(id, " ")
		if payload != n.payload {
			return "CONFLICT " + id
		}
		if m.touch(id); id == n.id {
			return "OK " + id
		}
		return "KNOWN " + id
	}
	if p := parentOf(n.id); p != "" {
		owner := m.touch(p)
		if !owner.lives() {
			return "OWNER " + p
		}
		owner.children = append(owner.children, n.id)
		owner.hadChildren = true
		bound := owner.until
		if bound == 0 {
			bound = owner.deadline
		}
		if bound != 0 && (n.deadline == 0 || n.deadline >= bound) {
			n.until = bound
		}
	}
	n.status, n.created = Pending, m.now
	if n.key != "" {
		m.keys[n.key] = n.id + " " + n.payload
	}
	m.tasks[n.id] = &n
	if n.available <= m.now {
		n.available = 0
		m.ready(&n, false)
	}
	return "OK " + n.id
}

// line is who may be fetched from a queue, in order.
func (m *model) line(queue string) []*modelTask {
	var line []*modelTask
	for _, t := range m.tasks {
		if t.queue == queue && t.status == Pending && t.available == 0 {
			line = append(line, t)
		}
	}
	slices.SortFunc(line, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.place, b.place))
	})
	return line
}

// held is what a worker holds, in the order of its claims.
func (m *model) held(worker string) []*modelTask {
	var held []*modelTask
	for _, t := range m.tasks {
		if t.status == Running && t.worker == worker {
			held = append(held, t)
		}
	}
	slices.SortFunc(held, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(a.claim, b.claim), cmp.Compare(a.id, b.id))
	})
	return held
}

func (m *model) fetch(worker string, ask Ask) []string {
	m.workers[worker] = m.now + ask.Lease.Milliseconds()
	var got []string
	tell := func(t *modelTask) { got = append(got, fmt.Sprintf("%s@%d", t.id, t.epoch)) }
	if ask.Seq <= m.fetched[worker] {
		for _, t := range m.held(worker) {
			if t.claim == ask.Seq && m.touch(t.id).status == Running {
				tell(t)
			}
		}
		return got
	}
	m.fetched[worker] = ask.Seq
	left := ask.N
	for round := range 2 {
		for _, quota := range ask.Quotas {
			want := left
			if round == 0 {
				want = min(quota.N, left)
			}
			for _, t := range m.line(quota.Queue) {
				if want == 0 {
					break
				}
				if m.touch(t.id); t.status != Pending {
					continue
				}
				t.status, t.worker, t.lostBy, t.claim, t.started = Running, worker, "", ask.Seq, m.now
				t.epoch++
				m.setLimit(t, t.attemptTimeout)
				tell(t)
				want, left = want-1, left-1
			}
		}
	}
	return got
}

func (m *model) settle(worker, call string, o Outcome) string {
	t := m.touch(o.ID)
	if t == nil {
		return "MISSING "
	}
	if t.requeuedBy == call {
		return "OK PENDING"
	}
	if t.call == call {
		return "OK " + string(t.status)
	}
	if t.epoch != o.Epoch || t.status != Running && !(t.status == Pending && t.lostBy != "" && t.lostBy == worker) {
		return "LOST " + string(t.status)
	}
	switch o.Verb {
	case Complete:
		m.end(t, Completed, m.now)
		t.result = string(o.Result)
	case Release:
		m.requeue(t, o.Delay.Milliseconds(), true)
	case Fail:
		m.fail(t, o)
	}
	if t.lives() {
		t.requeuedBy = call
	} else {
		t.call = call
	}
	return "OK " + string(t.status)
}

func (m *model) fail(t *modelTask, o Outcome) {
	final := t.until
	if final == 0 {
		final = t.deadline
	}
	delay := o.Delay.Milliseconds()
	switch {
	case o.Class == ClassTimeout:
		m.end(t, Failed, m.now)
		t.failure, t.reason, t.timeoutType, t.detected = "Task exceeded deadline", "timeout", "attempt", m.now
	case o.Class == ClassError && t.retries < t.maxRetries && (final == 0 || m.now+delay <= final):
		t.retries++
		t.lastError = o.Error
		m.requeue(t, delay, false)
	default:
		m.end(t, Failed, m.now)
		t.failure, t.reason = o.Error, o.Class
	}
}

func (m *model) requeue(t *modelTask, delay int64, front bool) {
	t.status, t.worker, t.lostBy, t.limit = Pending, "", "", 0
	if delay > 0 {
		t.available = m.now + delay
		return
	}
	m.ready(t, front)
}

func (m *model) giveBack(t *modelTask, blame bool) {
	if !blame {
		m.requeue(t, 0, true)
		return
	}
	t.losses++
	if t.losses > 3 {
		m.end(t, Failed, m.now)
		t.failure, t.reason = "worker lost", "lease_lost"
		return
	}
	worker := t.worker
	m.requeue(t, 0, true)
	t.lostBy = worker
}

func (m *model) heartbeat(worker string, lease, known int64, held []Held) []string {
	var stops []string
	mine := map[string]bool{}
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
		case t.epoch != h.Epoch:
			stops = append(stops, h.ID+" lost")
		case t.status == Pending && t.lostBy != worker:
			stops = append(stops, h.ID+" released")
		}
	}
	claims := m.held(worker)
	slices.Reverse(claims)
	for _, t := range claims {
		if lease == 0 || t.claim <= known && !mine[t.id] {
			if m.touch(t.id); t.status == Running {
				m.giveBack(t, false)
			}
		}
	}
	if lease > 0 {
		m.workers[worker] = m.now + lease
	} else {
		delete(m.workers, worker)
		delete(m.fetched, worker)
	}
	return stops
}

func (m *model) cancel(call, reason, id string) string {
	t := m.touch(id)
	switch {
	case t == nil:
		return "MISSING"
	case t.lives():
		m.end(t, Cancelled, m.now)
		t.failure, t.reason, t.call = reason, "cancelled", call
		return "CANCELLED"
	case t.status == Cancelled && t.call == call:
		return "CANCELLED"
	}
	return "ALREADY"
}

// due is the members of a clock at or before an instant, oldest first.
func due(clock map[string]int64, until int64) []string {
	var ids []string
	for id, at := range clock {
		if at <= until {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(clock[a], clock[b]), cmp.Compare(a, b)) })
	return ids
}

func (m *model) clock(at func(*modelTask) int64) map[string]int64 {
	clock := map[string]int64{}
	for id, t := range m.tasks {
		if t.lives() && at(t) != 0 {
			clock[id] = at(t)
		}
	}
	return clock
}

func (m *model) sweep() {
	if ids := due(m.drain, m.now); len(ids) > 0 {
		owner := ids[0]
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
	for _, id := range due(m.clock(func(t *modelTask) int64 { return t.deadline }), m.now-1) {
		m.touch(id)
	}
	for _, id := range due(m.clock(func(t *modelTask) int64 { return t.limit }), m.now-1) {
		m.touch(id)
	}
	if ids := due(m.workers, m.now-1); len(ids) > 0 {
		claims := m.held(ids[0])
		slices.Reverse(claims)
		for _, t := range claims {
			if m.touch(t.id); t.status == Running {
				m.giveBack(t, true)
			}
		}
		delete(m.workers, ids[0])
		delete(m.fetched, ids[0])
	}
	for _, id := range due(m.clock(func(t *modelTask) int64 { return t.available }), m.now) {
		if t := m.touch(id); t.status == Pending {
			t.available = 0
			m.ready(t, false)
		}
	}
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
