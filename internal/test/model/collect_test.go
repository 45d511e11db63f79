package model

import (
	"cmp"
	"slices"

	"github.com/curfew-dev/curfew/internal/names"
)

// modelCollector holds what a task has if it collects the ends of its children.
type modelCollector struct {
	collects bool
	ends     []string // of children that have ended and that it was not given yet
	handed   int      // how many it was given
}

const (
	mostEnds    = 500 // ends that a wait hands over
	mostAtFirst = 500 // children that an agent can have when it begins to collect
)

func (n modelNote) collects() bool {
	return slices.ContainsFunc(n.entries, func(e modelEntry) bool { return e.text == "collect" })
}

// unfit returns the field of a note that is wrong.
func (t *modelTask) unfit(n modelNote) string {
	if n.collects() && !t.collects && t.born > mostAtFirst {
		return "entry"
	}
	return ""
}

// beginToCollect gives an agent the children that have ended by then.
func (m *model) beginToCollect(t *modelTask) {
	var ended []*modelTask
	for _, id := range t.children {
		if child := m.tasks[id]; child != nil && child.status.Ended() {
			ended = append(ended, child)
		}
	}
	slices.SortFunc(ended, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(a.completed, b.completed), cmp.Compare(a.id, b.id))
	})
	for _, child := range ended {
		t.ends = append(t.ends, lastPart(child.id))
	}
	t.collects = true
}

// takeEnds hands over the first ends.
func (t *modelTask) takeEnds() []string {
	n := min(len(t.ends), mostEnds)
	taken := slices.Clone(t.ends[:n])
	t.ends, t.handed = t.ends[n:], t.handed+n
	return taken
}

// endDue ends the children that were out of time by an instant, and returns them. Those that this call has made are not
// on the clocks yet.
func (m *model) endDue(owner *modelTask, upto int64, made ...*modelTask) []*modelTask {
	var due []modelDue
	for id, t := range m.tasks {
		if names.OwnerOf(id) != owner.id || !t.lives() || !m.onClock(t) || slices.Contains(made, t) {
			continue
		}
		if over := m.over(t); over != nil && over.at <= upto {
			due = append(due, modelDue{task: t, at: over.at, fired: over.kind == "fires"})
		}
	}
	slices.SortFunc(due, func(a, b modelDue) int {
		return cmp.Or(cmp.Compare(a.at, b.at), first(a.fired, b.fired), cmp.Compare(a.task.id, b.task.id))
	})
	var ended []*modelTask
	for _, d := range due {
		m.touch(d.task.id)
		ended = append(ended, d.task)
	}
	return ended
}

// firstEnd returns which of some tasks ended first, nil if none has ended.
func firstEnd(tasks []*modelTask) (first *modelTask) {
	for _, t := range tasks {
		if !t.lives() && (first == nil || t.completed < first.completed) {
			first = t
		}
	}
	return first
}

// collect decides an open wait for the next end of any child.
func (m *model) collect(owner *modelTask, written []*modelTask, upto int64) {
	w := owner.wait
	for _, t := range written {
		upto = max(upto, t.completed)
	}
	earliest := firstEnd(append(slices.Clip(written), m.endDue(owner, upto)...))
	if earliest == nil || w.ends != 0 && earliest.completed > w.ends {
		return
	}
	w.state, w.reason, w.winner, w.fired = "fired", "satisfied", lastPart(earliest.id), max(earliest.completed, w.since)
	m.fired = append(m.fired, owner.id)
}

// collected gives an agent the ends that are there when it comes to a wait. If the limit of the wait was over before the
// first of them, the agent must wait.
func (m *model) collected(t *modelTask, w *modelWait, made []*modelTask) bool {
	m.endDue(t, m.now, made...)
	if len(t.ends) == 0 {
		return false
	}
	if limit := w.ends; limit != 0 && limit < m.now {
		var kept []*modelTask
		for _, name := range t.ends[:min(len(t.ends), mostEnds)] {
			kept = append(kept, m.tasks[t.id+"."+name])
		}
		if firstEnd(kept).completed > limit {
			return false
		}
	}
	w.reason, w.settled = "satisfied", t.takeEnds()
	w.members = w.settled
	return true
}
