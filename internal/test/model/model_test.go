package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// model implements the rules in plain Go, with maps and one clock. The model test plays the
// same operations on it and on Redis, and compares the whole state.
type model struct {
	now       int64
	least     int64 // the least number of a later task
	seq       int64 // the last place given at the end of a line, and at the front
	front     int64
	tasks     map[string]*modelTask
	queues    map[string]*modelQueue
	kinds     map[string]map[string]string // defaults, by kind
	timeout   int64                        // the default timeout of the namespace
	workers   map[string]int64             // end of lease
	fetched   map[string]int64             // the newest seq of each worker
	drain     map[string]int64
	goes      map[string]int64
	keys      map[string]modelKey
	forget    map[string]int64
	throttled map[string]int64
	waits     map[string]int64        // when to sweep the wait of an agent
	wake      map[string]bool         // queues that have a token
	lacks     map[string]string       // kinds for which a worker has no handler, with a space before and after each
	lacksAt   map[string]int64        // since when
	handles   map[string]string       // kinds of a worker that has described itself, in the same form
	alone     map[string]modelSuspect // the suspect that a worker runs alone; - if it waits for its last task
	suspects  map[string][]modelSuspect
	isolation modelIsolation
	taken     map[string]bool // queues whose token a worker took, and from which no worker has fetched since
	removed   map[string]bool // ids whose record was removed: they are not drawn again
	figures   map[string]map[string]int64

	// What a call collects for its end (done).
	woken      map[string]bool  // queues for which to wake a worker
	freed      map[string]bool  // queues with one running task less: wake a worker if tasks are in line
	fresh      map[string]bool  // ids that this call put in line: the call itself cannot claim them
	fired      []string         // agents to wake, whose wait is over
	noted      []modelEnds      // members that ended, by their agent
	passed     map[string]bool  // whether tasks of a set go back in line
	heldClaims int              // claims of held tasks, until they are counted
	heldBefore map[string]int64 // how many tasks of a set were held when the call began
	losers     int              // how many more members of such waits this call can end
	events     []string
}

type modelKey struct{ id, content string }

type modelTask struct {
	id, payload string
	given       map[string]string // fields from its producer and its kind, as stored
	status      queue.Status

	number, ofNumber                                  int64 // its own, if that is not created, and that of its owner
	created, deadline, until, warn, limit, available  int64
	readyAt                                           int64
	started, completed, detected, cancelled, grace    int64
	place, claim                                      int64 // in its line; the seq of the fetch that claimed it
	epoch, retries, losses                            int64
	worker, lostBy, lateBy, call, requeuedBy, untilOf string
	releaseReason                                     string
	result, failure, lastError, reason, timeoutType   string
	retryState, retryError, code                      string
	cancelReason, cancelledBy                         string
	progress                                          string
	progressAt                                        int64
	held                                              string
	heldAt                                            int64
	children                                          []string // not yet drained
	born                                              int64    // how many children it has had

	modelAgent
}

func newModel(now int64) *model {
	return &model{now: now, tasks: map[string]*modelTask{}, queues: map[string]*modelQueue{}, kinds: map[string]map[string]string{},
		workers: map[string]int64{}, fetched: map[string]int64{}, drain: map[string]int64{}, goes: map[string]int64{},
		keys: map[string]modelKey{}, forget: map[string]int64{}, throttled: map[string]int64{}, waits: map[string]int64{}, lacks: map[string]string{}, lacksAt: map[string]int64{}, alone: map[string]modelSuspect{}, suspects: map[string][]modelSuspect{}, handles: map[string]string{}, passed: map[string]bool{}, heldBefore: map[string]int64{}, wake: map[string]bool{},
		taken: map[string]bool{}, removed: map[string]bool{}, figures: map[string]map[string]int64{}, woken: map[string]bool{}, freed: map[string]bool{}, fresh: map[string]bool{}}
}

func (t *modelTask) lives() bool { return t != nil && !t.status.Ended() }

func (t *modelTask) ms(name string) int64 { return engine.Number(t.given[name]) }

func (t *modelTask) queue() string { return t.given["queue"] }

// final returns the latest instant at which the task can live, 0 for none.
func (t *modelTask) final() int64 {
	if t.until != 0 {
		return t.until
	}
	return t.deadline
}

func (m *model) emit(words ...string) { m.events = append(m.events, strings.Join(words, " ")) }

// modelInstant is an instant that ends a task.
type modelInstant struct {
	at   int64
	kind string
}

// over returns the instant that ends a task, or nil if the task has time left. The earliest
// instant that has passed counts; of equal instants the outermost.
func (m *model) over(t *modelTask) *modelInstant {
	var first *modelInstant
	consider := func(at int64, kind string, ancestor bool) {
		if at != 0 && (ancestor || at < m.now) && (first == nil || at < first.at) {
			first = &modelInstant{at, kind}
		}
	}
	var ancestors []string
	for a := names.OwnerOf(t.id); a != ""; a = names.OwnerOf(a) {
		ancestors = append(ancestors, a)
	}
	for _, a := range slices.Backward(ancestors) {
		kind := "owner"
		if owner := m.tasks[a]; owner != nil && owner.timeoutType != "" {
			kind = "workflow"
		}
		consider(m.drain[a], kind, true)
	}
	if owner := m.tasks[names.OwnerOf(t.id)]; owner.lives() { // an end of the owner that is not written yet
		if end := m.over(owner); end != nil && end.kind != "patience" {
			kind := "workflow"
			if end.kind == "owner" || end.kind == "fires" || owner.cancelled != 0 {
				kind = "owner"
			}
			consider(end.at, kind, true)
		}
	}
	consider(t.until, "workflow", false)
	consider(t.deadline, "execution", false)
	if !t.attempted() {
		consider(t.limit, "queue", false)
	} else if start, _ := m.again(t, modelFailure{class: queue.ClassTimeout, since: t.limit, delay: backOff}); start == 0 {
		consider(t.limit, "attempt", false)
	} else if span := t.ms("queue_timeout_ms"); span != 0 && t.limit != 0 && t.limit < m.now {
		consider(start+span, "queue", false)
	}
	consider(t.grace, "grace", false)
	consider(m.patienceEnd(t), "patience", false)
	// In one ms timers fire before limits end what still lives.
	if t.given["role"] == "timer" && t.available <= m.now && (first == nil || t.available <= first.at) {
		first = &modelInstant{t.available, "fires"}
	}
	return first
}

// touch returns a task. If the time of the task or of its attempt is up, touch ends that first.
func (m *model) touch(id string) *modelTask {
	t := m.tasks[id]
	if !t.lives() {
		return t
	}
	over := m.over(t)
	if t.attempted() && t.limit != 0 && t.limit < m.now && t.cancelled == 0 && (over == nil || over.at > t.limit || over.kind == "attempt") {
		m.attemptFailed(t, modelFailure{class: queue.ClassTimeout, since: t.limit, delay: backOff})
		if !t.lives() {
			return t
		}
		over = m.over(t)
	}
	switch {
	case over == nil:
	case over.kind == "fires":
		m.end(t, modelEnding{status: queue.Completed, at: over.at})
	case over.kind == "patience":
		m.end(t, modelEnding{status: queue.Cancelled, at: over.at, reason: "wait_timeout", failure: "Wait timed out"})
	case t.cancelled != 0:
		m.endCancelled(t, over.at, t.cancelReason)
	case over.kind == "owner":
		m.end(t, modelEnding{status: queue.Cancelled, at: over.at, reason: "owner_ended", failure: "Owner ended"})
	default:
		m.timeOut(t, over.at, over.kind)
	}
	return t
}

func (m *model) timeOut(t *modelTask, at int64, kind string) {
	text := "Task exceeded deadline"
	if kind == "execution" && t.given["on_deadline"] == "fail" {
		text = "Workflow exceeded timeout"
	}
	m.end(t, modelEnding{status: queue.Failed, at: at, reason: "timeout", timeoutType: kind, failure: text})
}

func (m *model) endCancelled(t *modelTask, at int64, why string) {
	m.end(t, modelEnding{status: queue.Cancelled, at: at, reason: cmp.Or(t.reason, "cancelled"), failure: cmp.Or(why, "Task cancelled")})
}

type modelEnding struct {
	status                               queue.Status
	at                                   int64
	result, failure, reason, timeoutType string
}

// end ends a task. Sweeps end its children; until then they are doomed.
func (m *model) end(t *modelTask, e modelEnding) {
	m.figure(t, e)
	m.leave(t)
	t.status, t.completed = e.status, e.at
	t.result, t.failure, t.reason, t.timeoutType = e.result, e.failure, e.reason, e.timeoutType
	counts := m.queues[t.queue()].counts
	counts[strings.ToLower(string(e.status))]++
	if t.born > 0 {
		m.drain[t.id] = e.at
	}
	owner := m.tasks[names.OwnerOf(t.id)]
	if !owner.lives() {
		m.retain(t)
	}
	if t.journal {
		t.notes, t.patience = nil, nil
	}
	if e.timeoutType != "" {
		t.detected = m.now
		counts["timed_out"]++
		m.emit("task_timed_out", t.id, e.timeoutType)
	} else {
		m.emit("task_"+strings.ToLower(string(e.status)), t.id, e.reason)
	}
	t.ends = nil
	if owner.lives() {
		if owner.collects {
			owner.ends = append(owner.ends, lastPart(t.id))
		}
		m.tally(owner, t)
	}
	m.hook(t)
}

// leave removes a task from its worker and from its wait. If its queue was full, it now has room.
func (m *model) leave(t *modelTask) {
	if t.status == queue.Running && m.controlled() {
		m.freed[t.queue()] = true
	}
	t.wait = nil
	delete(m.waits, t.id)
}

func (m *model) retain(t *modelTask) {
	span := int64(7 * 24 * 3600_000)
	if t.status == queue.Completed {
		span = 15 * 60_000
	}
	if t.given["retention_ms"] != "" {
		span = t.ms("retention_ms")
	}
	m.goes[t.id] = m.now + max(span, 60_000)
	key := t.given["idempotency_key"]
	if key == "" {
		return
	}
	switch t.given["idempotency_scope"] {
	case "":
		m.forget[key] = max(m.goes[t.id], m.now+24*3600_000)
	case "finished":
		delete(m.keys, key)
	case "started":
		if t.epoch == 0 {
			delete(m.keys, key)
		}
	}
}

// refuse records that a call changed nothing because of the state of its task.
func (m *model) refuse(t *modelTask, op, epoch string) {
	reason := "not_held"
	switch {
	case !t.lives() && t.timeoutType != "":
		reason = "late"
	case t.status == queue.Cancelled:
		reason = "cancelled"
	case !t.lives():
		reason = "ended"
	case epoch != "" && epoch != fmt.Sprint(t.epoch):
		reason = "stale"
	}
	m.emit("rejected", t.id, op, reason)
}

// done ends a call: tasks that it put in line become visible, and agents and workers that it
// must wake are woken.
func (m *model) done() {
	for m.countEnds(); len(m.fired) > 0; m.countEnds() {
		id := m.fired[0]
		m.fired = m.fired[1:]
		m.conclude(m.tasks[id])
	}
	clear(m.fresh)
	for line := range m.freed {
		if len(m.line(line)) > 0 || len(m.heldSets()) > 0 {
			m.woken[line] = true
		}
	}
	clear(m.freed)
	for _, line := range slices.Sorted(maps.Keys(m.woken)) {
		m.wakeFor(line)
	}
	clear(m.woken)
	clear(m.passed)
	m.heldBefore = m.heldSets()
}

// due returns the members of a clock at or before an instant, oldest first.
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
