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

// modelStanding is a member as the call reads it.
type modelStanding struct {
	modelMember
	name string
	task *modelTask
	at   int // its place in the list
}

// begin decides on a wait: the agent continues at once, or waits.
func (m *model) begin(t *modelTask, c modelCall, w *modelWait, members []modelMember) string {
	last, size := c.fields["part"] == c.fields["of"], w.size
	w.size += int64(len(members))
	if w.size > engine.Number(c.fields["most"]) {
		return "INVALID members"
	}
	var field string
	w.needOK, w.mostBad, w.all, field = thresholds(c.fields["mode"], w.size, engine.Number(c.fields["need"]))
	if field != "" && (last || field == "mode") {
		return "INVALID " + field
	}
	made, answer := m.plan(c)
	if answer != "" {
		return answer
	}
	standing, answer := m.look(members, made)
	if answer != "" {
		return answer
	}

	if kept := strings.SplitN(t.notes["until"], " ", 3); len(kept) == 3 && kept[0] == w.entry && kept[2] == c.fields["digest"] {
		w.ends = 0
		if kept[1] != "none" {
			w.ends = engine.Number(kept[1])
		}
	} else if c.fields["part"] == "1" {
		t.patience = nil
	}
	t.wait = nil
	for _, one := range made {
		m.admit(one, c.children[slices.IndexFunc(c.children, func(f map[string]string) bool { return f["id"] == one.id })])
	}
	m.write(t, c.note)
	if from := engine.Number(c.fields["from"]); from > 0 && w.ends == 0 && c.fields["limit_ms"] != "" && (last || c.fields["limit_ms"] != "computed") {
		w.ends = from + w.limit(c, standing)
	}
	if c.fields["mode"] == "collect" && last && m.collected(t, w, made) {
		return m.goOn(t, w, nil)
	}
	open := m.weigh(t, w, standing, last)
	over := w.reason != ""
	if over && (w.losers == "keep" || c.fields["of"] == "1" && w.size-int64(len(w.settled)) <= 100) {
		return m.goOn(t, w, open)
	}
	for _, s := range open {
		w.pending[s.name] = (3-s.task.ms("priority"))<<24 + size + int64(s.at)
	}
	t.bear(standing, m.now)
	w.patient = w.patient || len(t.patience) > 0
	if t.wait = w; !last {
		w.state, w.formed, t.journal = "forming", w.longest, true
		return "MORE"
	}
	return m.rest(t, c, w, over)
}

// look returns the members after ending those whose time is up. It returns an answer if a
// member does not exist.
func (m *model) look(members []modelMember, made []*modelTask) (standing []modelStanding, answer string) {
	for i, mm := range members {
		s := modelStanding{modelMember: mm, name: lastPart(mm.id), at: i + 1}
		if n := slices.IndexFunc(made, func(child *modelTask) bool { return child.id == mm.id }); n >= 0 {
			s.task = made[n]
		} else if s.task = m.touch(mm.id); s.task == nil {
			return nil, "UNKNOWN " + mm.id
		}
		standing = append(standing, s)
	}
	return standing, ""
}

// enter adds the members to the wait, and updates the longest time that a member has.
func (w *modelWait) enter(standing []modelStanding) {
	for _, s := range standing {
		w.members = append(slices.Clip(w.members), s.name)
		w.longest = max(w.longest, s.span())
		if s.mask != "" {
			w.masks[s.name] = s.mask
		}
	}
}

// span returns the longest time that a member can take, 0 if it has no limit.
func (s modelStanding) span() int64 {
	span := s.task.ms("attempt_timeout_ms")
	if span == 0 && s.task.deadline != 0 {
		span = s.task.deadline - s.task.created
	}
	return span
}

// bear starts the members' own limits. A limit that an earlier attempt started is kept.
func (t *modelTask) bear(standing []modelStanding, now int64) {
	for _, s := range standing {
		if _, known := t.patience[s.name]; s.patience != "" && !known {
			if t.patience == nil {
				t.patience = map[string]int64{}
			}
			t.patience[s.name] = now + engine.Number(s.patience)
		}
	}
}

// plan returns the children to make, or an answer if one is refused.
func (m *model) plan(c modelCall) (made []*modelTask, answer string) {
	for i, f := range c.children {
		child, answer := m.consider(f)
		switch {
		case answer != "" && !strings.HasPrefix(answer, "OK "):
			return nil, fmt.Sprintf("CHILD %d %s", i+1, answer)
		case names.OwnerOf(f["id"]) != c.agent:
			return nil, "FOREIGN " + f["id"]
		case slices.ContainsFunc(c.children[:i], func(before map[string]string) bool { return before["id"] == f["id"] }):
			return nil, fmt.Sprintf("CHILD %d INVALID id", i+1)
		}
		if child != nil {
			made = append(made, child)
		}
	}
	return made, ""
}

// weigh counts the members that have ended, in the order they ended, until the wait is over. A
// member that ended after the limit kept from an earlier attempt is not counted.
// It returns the members that are not counted.
func (m *model) weigh(t *modelTask, w *modelWait, standing []modelStanding, last bool) []modelStanding {
	counted := map[string]bool{}
	ended := slices.DeleteFunc(append(m.earlier(t, w, last), standing...), func(s modelStanding) bool {
		return s.task.status == "" || s.task.lives() || w.ends != 0 && s.task.completed > w.ends
	})
	w.enter(standing)
	slices.SortStableFunc(ended, func(a, b modelStanding) int {
		return cmp.Or(cmp.Compare(a.task.completed, b.task.completed), first(a.task.fired(), b.task.fired()))
	})
	// A join is over at once if a member had failed before it began.
	over := func() bool {
		if !last || w.fields["mode"] == "peek" {
			return false
		}
		if w.reason = w.reached(); w.reason == "" && w.fields["mode"] == "all" && w.bad > 0 {
			w.reason = "impossible"
		}
		return w.reason != ""
	}
	over()
	for _, s := range ended {
		if w.reason != "" {
			break
		}
		counted[s.name] = true
		w.count(s.name, s.task)
		if over() {
			w.winner = s.name
		}
	}
	if last && w.fields["mode"] == "peek" {
		w.reason = "satisfied"
	}
	return slices.DeleteFunc(slices.Clone(standing), func(s modelStanding) bool { return counted[s.name] })
}

// earlier returns the members that ended while earlier parts of the wait were sent. The last
// part counts them again with its own members, as if all had come in one part.
func (m *model) earlier(t *modelTask, w *modelWait, last bool) (standing []modelStanding) {
	if !last {
		return nil
	}
	for _, name := range w.members {
		if slices.Contains(w.settled, name) {
			standing = append(standing, modelStanding{name: name, task: m.tasks[t.id+"."+name]})
		}
	}
	w.settled, w.ok, w.bad = nil, 0, 0
	return standing
}

// goOn answers a wait that is over before it has begun.
func (m *model) goOn(t *modelTask, w *modelWait, open []modelStanding) string {
	if w.losers == "cancel" {
		slices.SortStableFunc(open, func(a, b modelStanding) int {
			return cmp.Compare(b.task.ms("priority"), a.task.ms("priority"))
		})
		for _, s := range open {
			m.lose(s.id, "not_needed", m.now)
		}
	}
	t.patience = nil
	t.remember(w.entry, w.verdict(m.now))
	return "READY " + w.verdict(m.now)
}

// limit returns the span of the wait's limit, 0 for none.
//
//	more  members that are not entered yet
func (w *modelWait) limit(c modelCall, more []modelStanding) int64 {
	longest := w.longest
	for _, s := range more {
		longest = max(longest, s.span())
	}
	switch {
	case c.fields["limit_ms"] != "computed":
		return engine.Number(c.fields["limit_ms"])
	case longest == 0:
		return 1_800_000
	}
	return min(longest*w.size*3/2, 1_800_000)
}

// rest makes the agent wait.
func (m *model) rest(t *modelTask, c modelCall, w *modelWait, over bool) string {
	w.state, w.since = "open", m.now
	if over {
		w.state, w.fired = "fired", m.now
	}
	w.span = w.limit(c, nil)
	from := engine.Number(c.fields["from"])
	if first := c.fields["from"] == "first"; first && len(w.settled) > 0 {
		w.first = m.now
	}
	if from > 0 {
		w.first = from
	}
	if w.ends == 0 && w.span != 0 && (c.fields["from"] != "first" || len(w.settled) > 0) {
		w.ends = cmp.Or(max(from, 0), m.now) + w.span
	}
	if m.controlled() {
		m.freed[t.queue()] = true
	}
	t.status, t.worker, t.suspendedBy, t.journal, t.attemptAt, t.passedOn = queue.Waiting, "", c.call, true, t.limit, 0
	t.countedAs = "unbounded_" + w.fields["mode"]
	if c.fields["limit_ms"] != "" || t.limit != 0 || t.deadline != 0 || t.until != 0 {
		t.countedAs = "bounded_" + w.fields["mode"]
	}
	m.watch(t)
	m.emit("task_suspended", t.id, w.fields["mode"], w.entry, fmt.Sprint(w.size), zeroless(w.ends))
	if over {
		m.fired = append(m.fired, t.id)
	}
	return "WAITING"
}
