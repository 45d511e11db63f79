package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// modelAgent holds what a task has if it waits, or has waited.
type modelAgent struct {
	suspendedBy string
	countedAs   string // the counter of its queue that counts its wait
	lineAt      int64  // the limit of the line from which its claim came
	passedOn    int64  // how many workers in a row had no handler for its kind
	attemptAt   int64  // the limit of its attempt, while it waits or is in line after it was woken
	woken       bool
	journal     bool
	wait        *modelWait
	notes       map[string]string // its journal
	patience    map[string]int64  // members that have a limit of their own, and its instant
	modelCollector
}

// mostLosers is how many members of waits that are over a call can end.
const mostLosers = 100

// modelWait is the current wait of an agent.
type modelWait struct {
	fields                   map[string]string // as sent, and defaults
	entry, state             string
	calls                    map[string]string // by part, without the last one
	reason, winner           string
	losers                   string
	members, settled         []string
	pending                  map[string]int64
	masks                    map[string]string
	ok, bad                  int64
	needOK, mostBad, all     int64 // 0: no such threshold; all is always one
	size, longest            int64
	formed                   int64 // the value of longest that an earlier part stored
	span, ends, first, since int64
	epoch, part              string
	fired                    int64 // the instant at which it was over
	patient                  bool  // members have limits of their own
}

// thresholds returns the counts at which a wait of n members is over, or the field that is wrong.
func thresholds(mode string, n, need int64) (needOK, mostBad, all int64, field string) {
	switch mode {
	case "all", "settled":
		return 0, 0, n, ""
	case "fail_fast":
		return 0, min(n, 1), n, ""
	case "peek":
		return 0, 0, 0, ""
	case "collect":
		if n > 0 {
			return 0, 0, 0, "mode"
		}
		return 0, 0, 1, ""
	}
	switch {
	case n == 0 && (mode == "any" || mode == "any_ok"):
		return 0, 0, 0, "members"
	case mode == "any":
		return 0, 0, 1, ""
	case mode == "any_ok":
		return 1, 0, n, ""
	case need > n:
		return 0, 0, 0, "need"
	case mode == "n_settled" || need == 0:
		return 0, 0, need, ""
	}
	return need, n - need + 1, n, ""
}

// reached returns how a wait is over by its counters, "" if it is not.
func (w *modelWait) reached() string {
	switch {
	case w.needOK != 0 && w.ok >= w.needOK:
		return "satisfied"
	case w.mostBad != 0 && w.bad >= w.mostBad:
		return "impossible"
	case int64(len(w.settled)) < w.all:
		return ""
	case w.needOK != 0:
		return "impossible"
	}
	return "satisfied"
}

// count counts the end of a member.
func (w *modelWait) count(name string, t *modelTask) {
	mask := cmp.Or(w.masks[name], w.fields["mask"])
	place := 1
	switch {
	case t.status == queue.Completed:
		place = 0
	case t.status == queue.Cancelled:
		place = 4
	case t.reason == "failed" || t.timeoutType == "execution" && t.given["on_deadline"] == "fail":
		place = 2
	case t.reason == "timeout":
		place = 3
	}
	switch mask[place] {
	case 'o':
		w.ok++
	case 'b':
		w.bad++
	}
	w.settled = append(w.settled, name)
}

// lastPart returns the name of a child: the last part of its id.
func lastPart(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// tally notes the end of a child whose owner waits. The ends of a unit of work are counted at its end.
func (m *model) tally(owner, t *modelTask) {
	if owner.wait == nil {
		return
	}
	n := slices.IndexFunc(m.noted, func(e modelEnds) bool { return e.owner == owner })
	if n < 0 {
		m.noted, n = append(m.noted, modelEnds{owner: owner}), len(m.noted)
	}
	if m.noted[n].wait != owner.wait { // the earlier ends belong to a wait that is forgotten
		m.noted[n] = modelEnds{owner: owner, wait: owner.wait}
	}
	m.noted[n].tasks = append(m.noted[n].tasks, t)
}

// modelEnds holds the ends of members of a wait that a unit of work has written.
type modelEnds struct {
	owner *modelTask
	wait  *modelWait
	tasks []*modelTask
}

// countEnds counts all ends that the unit has written.
func (m *model) countEnds() {
	for len(m.noted) > 0 {
		e := m.noted[0]
		m.noted = m.noted[1:]
		if e.wait == e.owner.wait && e.wait.state != "fired" {
			m.countWait(e.owner, e.tasks, 0)
		}
	}
}

// modelDue is a member to count: it has ended, or its time was up by then.
type modelDue struct {
	task      *modelTask
	at        int64
	impatient bool // its own limit in the wait ends it
	dropped   bool // it has such a limit, but ended before it
	fired     bool // it is a timer that fires then, and has not ended
}

func (d modelDue) fires() bool { return d.fired || d.task.fired() }

// fired reports whether a task is a timer that has fired.
func (t *modelTask) fired() bool {
	return t.given["role"] == "timer" && t.status == queue.Completed && t.call == ""
}

// first compares two ends of one ms: a timer that fires comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// countWait counts ends in the order of their instants. First it ends members whose time was up by
// then and that are still live. It reports whether more are out of time than one call can end.
func (m *model) countWait(owner *modelTask, written []*modelTask, upto int64) (more bool) {
	w := owner.wait
	if w.fields["mode"] == "collect" && w.state == "open" {
		m.collect(owner, written, upto)
		return false
	}
	var all []modelDue
	for _, t := range written {
		upto = max(upto, t.completed)
		if _, pending := w.pending[lastPart(t.id)]; pending {
			all = append(all, modelDue{task: t, at: t.completed})
		}
	}
	if len(written) > 0 && len(all) == 0 {
		return false
	}
	if w.state == "open" && len(all) < len(w.pending) {
		all, more = m.unseen(owner, all, upto)
	}
	slices.SortStableFunc(all, func(a, b modelDue) int {
		return cmp.Or(cmp.Compare(a.at, b.at), first(a.fires(), b.fires()), cmp.Compare(w.pending[lastPart(a.task.id)]%(1<<24), w.pending[lastPart(b.task.id)]%(1<<24)))
	})
	for _, d := range all {
		name := lastPart(d.task.id)
		if w.state != "open" && w.state != "forming" || w.ends != 0 && d.at > w.ends {
			break
		}
		if _, pending := w.pending[name]; !pending {
			continue
		}
		if d.impatient {
			m.losers--
			delete(owner.patience, name)
			m.lose(d.task.id, "patience", d.at)
		} else {
			m.touch(d.task.id)
		}
		if d.dropped {
			delete(owner.patience, name)
		}
		if !d.task.lives() {
			m.countMember(owner, d.task)
		}
	}
	if w.state == "open" && w.patient {
		m.watch(owner)
	}
	return more
}

// unseen adds the members whose time was up by an instant, and whose end is not written yet.
func (m *model) unseen(owner *modelTask, all []modelDue, upto int64) (found []modelDue, more bool) {
	impatient := due(owner.patience, min(upto, m.now-1))
	last := int64(1) << 60
	if more = len(impatient) > m.losers; more {
		impatient, last = impatient[:m.losers], 0
		if m.losers > 0 {
			last = owner.patience[impatient[m.losers-1]]
		}
	}
	for name := range owner.wait.pending {
		t := m.tasks[owner.id+"."+name]
		if !t.lives() || !m.onClock(t) {
			continue
		}
		if over := m.over(t); over != nil && over.at <= min(upto, last) {
			all = append(all, modelDue{task: t, at: over.at, fired: over.kind == "fires"})
		}
	}
	for _, name := range impatient {
		same := slices.IndexFunc(all, func(d modelDue) bool {
			return lastPart(d.task.id) == name && (!d.task.lives() || d.at <= owner.patience[name])
		})
		_, pending := owner.wait.pending[name]
		switch {
		case same >= 0:
			all[same].dropped = true
		case pending:
			all = append(all, modelDue{task: m.tasks[owner.id+"."+name], at: owner.patience[name], impatient: true})
		default:
			delete(owner.patience, name)
		}
	}
	return all, more
}

// onClock reports whether a task is due on a clock.
func (m *model) onClock(t *modelTask) bool {
	return t.deadline != 0 && t.deadline < m.now || t.nearest() != 0 && t.nearest() < m.now || t.available != 0 && t.available <= m.now
}

// countMember counts the end of a member that is pending in the wait.
func (m *model) countMember(owner, t *modelTask) {
	w, name, at := owner.wait, lastPart(t.id), max(t.completed, owner.wait.since)
	delete(w.pending, name)
	w.count(name, t)
	if how := w.reached(); how != "" && w.state == "open" {
		w.state, w.reason, w.winner, w.fired = "fired", how, name, at
		m.fired = append(m.fired, owner.id)
	}
	if w.fields["from"] == "first" && w.span != 0 && w.ends == 0 {
		w.first, w.ends = at, at+w.span
		if w.state == "open" {
			m.watch(owner)
		}
	}
}

// patienceEnd returns when the wait of its owner cancels a task, 0 for never.
func (m *model) patienceEnd(t *modelTask) int64 {
	owner := m.tasks[names.OwnerOf(t.id)]
	if !owner.lives() || owner.wait == nil || owner.wait.state != "open" || t.cancelled != 0 || t.status == queue.Running && t.given["cancel_grace_ms"] != "" {
		return 0
	}
	at := owner.patience[lastPart(t.id)]
	if _, pending := owner.wait.pending[lastPart(t.id)]; !pending || owner.wait.ends != 0 && owner.wait.ends < at {
		return 0
	}
	return at
}

// watch schedules the sweep of a wait for when its limit, or a member's own limit, is over.
func (m *model) watch(t *modelTask) {
	first := t.wait.ends
	for _, at := range t.patience {
		if first == 0 || at < first {
			first = at
		}
	}
	if m.waits[t.id] = first; first == 0 {
		delete(m.waits, t.id)
	}
}

// conclude wakes an agent whose wait is over, once the members that must be cancelled first are. An
// agent whose own time is up is not woken.
func (m *model) conclude(t *modelTask) {
	if t == nil || t.wait == nil || t.wait.state != "fired" || t.status != queue.Waiting || t.limit != 0 && t.limit < m.now {
		return
	}
	if over := m.over(t); over != nil {
		if over.kind == "patience" { // the wait of its owner may have been decided before
			m.waits[t.id] = m.now - 1
		}
		return
	}
	w, why := t.wait, "not_needed"
	if w.reason == "timed_out" {
		why = "wait_timeout"
	}
	if w.losers == "cancel" {
		losers := due(w.pending, 1<<60)
		losers = losers[:min(len(losers), m.losers)]
		m.losers -= len(losers)
		for _, name := range losers {
			delete(w.pending, name)
			m.lose(t.id+"."+name, why, m.now)
		}
		if len(w.pending) > 0 {
			m.waits[t.id] = m.now - 1
			return
		}
	}
	if w.fields["mode"] == "collect" && w.reason != "timed_out" {
		w.settled = t.takeEnds()
		w.members = w.settled
	}
	t.remember(w.entry, w.verdict(w.fired))
	m.value(t, "woken "+w.fields["mode"]+" "+w.reason, modelLags, m.now-w.fired)
	m.leave(t)
	t.status, t.woken, t.patience = queue.Pending, true, nil
	m.ready(t, false, w.fired, 0)
	m.emit("task_resumed", t.id, w.reason, w.fields["mode"], w.entry)
}

// verdict returns the journal entry of a wait that is over.
func (w *modelWait) verdict(at int64) string {
	return fmt.Sprintf("wait %s %s %d %s\n%s\n%s\n%s", w.reason, cmp.Or(w.winner, "-"), at, w.fields["digest"],
		w.fields["label"], strings.Join(w.members, " "), strings.Join(w.settled, " "))
}

// lose cancels a member that its wait no longer waits for, as of an instant. A signal is not
// cancelled.
func (m *model) lose(id, why string, at int64) {
	t := m.touch(id)
	reason, text := "wait_timeout", "Wait timed out"
	if why == "not_needed" {
		reason, text = why, "No longer needed"
	}
	switch {
	case !t.lives() || t.cancelled != 0:
	case t.given["role"] != "" && strings.HasPrefix(lastPart(id), "s-"):
	case t.status == queue.Running && t.given["cancel_grace_ms"] != "":
		m.spare(t, reason, text, "")
	default:
		m.end(t, modelEnding{status: queue.Cancelled, at: at, reason: reason, failure: text})
	}
}

// waited is what the sweep does for an agent whose wait is due.
func (m *model) waited(id string) {
	t := m.touch(id)
	if t == nil || t.status != queue.Waiting {
		return
	}
	w := t.wait
	more := w.state == "open" && m.countWait(t, nil, min(cmp.Or(w.ends, m.now), m.now))
	if w.state == "open" && !more && w.ends != 0 && w.ends < m.now {
		w.state, w.reason, w.losers, w.fired = "fired", "timed_out", w.fields["on_pending"], w.ends
		m.emit("wait_timed_out", id, w.fields["on_timeout"], w.fields["mode"], fmt.Sprint(len(w.settled)), fmt.Sprint(w.size),
			fmt.Sprint(w.ends-cmp.Or(w.first, w.since)), fmt.Sprint(w.ends), fmt.Sprint(m.now-w.ends))
		m.count(t, "wait timeout "+w.fields["on_timeout"], 1)
		m.value(t, "lag synchronization", modelLags, m.now-w.ends)
	}
	if w.state == "fired" {
		delete(m.waits, id)
		m.fired = append(m.fired, id)
		return
	}
	m.watch(t)
}

// attempted reports whether the limit of a task is that of its attempt, not of its line.
func (t *modelTask) attempted() bool {
	return t.status != queue.Pending || t.woken && t.limit == t.attemptAt
}

// note sets a field of an agent's journal. remember sets one only once.
func (t *modelTask) note(name, text string) {
	if t.notes == nil {
		t.notes = map[string]string{}
	}
	t.notes[name] = text
}

func (t *modelTask) remember(entry, text string) {
	if _, known := t.notes[entry]; !known {
		t.note(entry, text)
		t.losses = 0
		if text != "" {
			t.note("bytes", fmt.Sprint(engine.Number(t.notes["bytes"])+int64(len(text))))
		}
	}
	t.journal = true
}
