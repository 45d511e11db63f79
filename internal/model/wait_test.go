package model

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// modelAgent is what a task has that waits, or did.
type modelAgent struct {
	suspendedBy string
	attemptAt   int64 // the limit of its attempt, while it waits and stands in line woken
	woken       bool
	journal     bool
	wait        *modelWait
	notes       map[string]string // its journal
	patience    map[string]int64  // members that have a limit of their own, by when
}

// mostLosers is how many members of waits that are over a call ends.
const mostLosers = 100

// modelWait is the wait that an agent is at.
type modelWait struct {
	fields                   map[string]string // as they were sent, and what was filled in
	entry, state             string
	calls                    map[string]string // of each part but the last
	reason, winner           string
	losers                   string
	members, settled         []string
	pending                  map[string]int64
	masks                    map[string]string
	ok, bad                  int64
	needOK, mostBad, all     int64 // 0: there is no such threshold, but for all
	size, longest            int64
	formed                   int64 // the longest, as an earlier part has written it
	span, ends, first, since int64
	epoch, part              string
}

// thresholds are what a wait of n members is over at; field is what is wrong instead.
func thresholds(mode string, n, need int64) (needOK, mostBad, all int64, field string) {
	switch mode {
	case "all", "settled":
		return 0, 0, n, ""
	case "fail_fast":
		return 0, min(n, 1), n, ""
	case "peek":
		return 0, 0, 0, ""
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

// reached tells how a wait is over by its counters, "" if it is not.
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

// lastPart is the name of a child: the last part of its id.
func lastPart(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// tally counts the end of a child, if its owner waits for it. What ended after the limit
// of the wait is not counted.
func (m *model) tally(owner, t *modelTask) {
	w, name := owner.wait, lastPart(t.id)
	if w == nil || w.state == "fired" || w.ends != 0 && t.completed > w.ends {
		return
	}
	if _, pending := w.pending[name]; !pending {
		return
	}
	delete(w.pending, name)
	w.count(name, t)
	if how := w.reached(); how != "" && w.state == "open" {
		w.state, w.reason, w.winner = "fired", how, name
		m.fired = append(m.fired, owner.id)
	}
	if w.fields["from"] == "first" && w.span != 0 && w.ends == 0 {
		w.first, w.ends = t.completed, t.completed+w.span
		if w.state == "open" {
			m.watch(owner)
		}
	}
}

// watch has the sweep look at a wait when it, or the patience with a member, is over.
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

// conclude wakes an agent whose wait is over, once nobody is left that must end first. One
// whose own time is up is not woken.
func (m *model) conclude(t *modelTask) {
	if t == nil || t.wait == nil || t.wait.state != "fired" || t.status != queue.Waiting || m.over(t) != nil || t.limit != 0 && t.limit < m.now {
		return
	}
	w, why, at := t.wait, "not_needed", m.now
	if w.reason == "timed_out" {
		why, at = "wait_timeout", w.ends
	}
	if w.losers == "cancel" {
		names := due(w.pending, 1<<60)
		names = names[:min(len(names), m.losers)]
		m.losers -= len(names)
		for _, name := range names {
			delete(w.pending, name)
			m.lose(t.id+"."+name, why, m.now)
		}
		if len(w.pending) > 0 {
			m.waits[t.id] = m.now - 1
			return
		}
	}
	t.remember(w.entry, w.verdict(at))
	m.leave(t)
	t.status, t.woken, t.patience = queue.Pending, true, nil
	m.ready(t, false)
	m.tell("task_resumed", t.id, w.reason, w.fields["mode"], w.entry)
}

// verdict is what a journal says of a wait that is over.
func (w *modelWait) verdict(at int64) string {
	return fmt.Sprintf("wait %s %s %d %s\n%s\n%s\n%s", w.reason, cmp.Or(w.winner, "-"), at, w.fields["digest"],
		w.fields["label"], strings.Join(w.members, " "), strings.Join(w.settled, " "))
}

// lose cancels a member that the wait does not wait for any more, as of an instant. A
// signal is left alone.
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
		m.spare(t, text, "")
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
	if w.state == "open" && m.impatient(t) {
		if w.state == "open" {
			m.watch(t)
		}
		return
	}
	if w.state == "open" && w.ends != 0 && w.ends < m.now {
		w.state, w.reason, w.losers = "fired", "timed_out", w.fields["on_pending"]
		m.tell("wait_timed_out", id, w.fields["on_timeout"], w.fields["mode"], fmt.Sprint(len(w.settled)), fmt.Sprint(w.size),
			fmt.Sprint(w.ends-cmp.Or(w.first, w.since)), fmt.Sprint(w.ends), fmt.Sprint(m.now-w.ends))
	}
	if w.state == "fired" {
		delete(m.waits, id)
		m.fired = append(m.fired, id)
		return
	}
	m.watch(t)
}

// impatient cancels members that the agent has waited for long enough, as of the end of
// the wait at the latest. It tells whether there are more than one call may end.
func (m *model) impatient(t *modelTask) (more bool) {
	names := due(t.patience, m.now-1)
	more = len(names) > m.losers
	for _, name := range names[:min(len(names), m.losers)] {
		at := t.patience[name]
		if t.wait.ends != 0 && at > t.wait.ends {
			more = false
			break
		}
		delete(t.patience, name)
		if _, pending := t.wait.pending[name]; pending {
			m.lose(t.id+"."+name, "patience", at)
		}
		m.losers--
	}
	return more
}

// attempted tells whether the limit of a task is that of its attempt, not of its line.
func (t *modelTask) attempted() bool {
	return t.status != queue.Pending || t.woken && t.limit == t.attemptAt
}

// note writes into the journal of an agent, and remember does so once.
func (t *modelTask) note(name, text string) {
	if t.notes == nil {
		t.notes = map[string]string{}
	}
	t.notes[name] = text
}

func (t *modelTask) remember(entry, text string) {
	if _, known := t.notes[entry]; !known {
		t.note(entry, text)
		if text != "" {
			t.note("bytes", fmt.Sprint(engine.Number(t.notes["bytes"])+int64(len(text))))
		}
	}
	t.journal = true
}
