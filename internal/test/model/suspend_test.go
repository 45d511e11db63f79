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

// modelCall holds the arguments of a suspend.
type modelCall struct {
	agent, worker, call string
	epoch               int64
	fields              map[string]string // of the wait
	members             []modelMember
	note                modelNote
	children            []map[string]string
}

type modelMember struct{ id, patience, mask string }

// modelNote is what an agent remembers.
type modelNote struct {
	checkpoint map[string]string
	entries    []modelEntry
}

type modelEntry struct{ number, text string }

// holder returns the agent of a call, or an answer if the caller does not hold it.
func (m *model) holder(id string, epoch int64, worker, op string) (*modelTask, string) {
	t := m.touch(id)
	switch {
	case t == nil:
		return nil, "MISSING"
	case t.status != queue.Running || t.epoch != epoch || t.worker != worker:
		m.refuse(t, op, fmt.Sprint(epoch))
		return nil, "LOST " + string(t.status)
	case t.cancelled != 0:
		return nil, "CANCELLING " + zeroless(t.grace)
	}
	return t, ""
}

func (m *model) rememberAll(id string, epoch int64, worker string, n modelNote) string {
	defer m.done()
	t, answer := m.holder(id, epoch, worker, "remember")
	if answer != "" {
		return answer
	}
	if field := t.unfit(n); field != "" {
		return "INVALID " + field
	}
	m.write(t, n)
	return "OK"
}

// write stores what an agent wants to remember.
func (m *model) write(t *modelTask, n modelNote) {
	past := t.past()
	if c := n.checkpoint; c != nil && (engine.Number(c["entries"]) > past || engine.Number(c["entries"]) == past && c["state"] != t.notes["state"]) {
		until := t.notes["until"]
		t.notes, t.journal, past = maps.Clone(c), true, engine.Number(c["entries"])
		t.losses = 0
		if entry, _, _ := strings.Cut(until, " "); engine.Number(entry) > past {
			t.notes["until"] = until
		}
	}
	for _, e := range n.entries {
		if e.text == "collect" && !t.collects {
			m.beginToCollect(t)
		}
		if engine.Number(e.number) > past {
			t.remember(e.number, e.text)
		}
	}
}

// past returns the number of the last entry before its checkpoint, -1 if it has none.
func (t *modelTask) past() int64 {
	if entries, ok := t.notes["entries"]; ok {
		return engine.Number(entries)
	}
	return -1
}

// suspend has an agent wait.
func (m *model) suspend(c modelCall) string {
	defer m.done()
	if t := m.tasks[c.agent]; t != nil && t.suspendedBy == c.call {
		return "WAITING"
	}
	t, answer := m.holder(c.agent, c.epoch, c.worker, "suspend")
	switch {
	case answer != "":
		return answer
	case t.wait != nil && t.wait.calls[c.fields["part"]] == c.call:
		return "MORE"
	}
	known, was := t.notes[c.fields["entry"]]
	if was {
		lines := strings.Split(known, "\n")
		if words := strings.Fields(lines[0]); len(words) == 5 && len(lines) > 1 && words[0] == "wait" {
			if words[4] == c.fields["digest"] {
				return "READY " + known
			}
			return "DIVERGED " + lines[1]
		}
		return "DIVERGED " + lines[0]
	}
	if engine.Number(c.fields["entry"]) <= t.past() {
		return "INVALID entry"
	}
	members, answer := c.distinct()
	if answer != "" {
		return answer
	}
	if field := t.unfit(c.note); field != "" {
		return "INVALID " + field
	}
	if engine.Number(c.note.checkpoint["entries"]) >= engine.Number(c.fields["entry"]) {
		return "INVALID checkpoint"
	}
	if c.fields["mode"] == "collect" && !t.collects && !c.note.collects() {
		return "INVALID mode"
	}
	if slices.ContainsFunc(c.note.entries, func(e modelEntry) bool { return e.number == c.fields["entry"] }) {
		return "INVALID entry"
	}
	w, answer := t.begun(c)
	if answer != "" {
		return answer
	}
	return m.begin(t, c, w, slices.DeleteFunc(members, func(mm modelMember) bool { return slices.Contains(w.members, lastPart(mm.id)) }))
}

// distinct returns the members without duplicates, or an answer if one is not a child of the
// agent.
func (c *modelCall) distinct() (members []modelMember, answer string) {
	for _, mm := range c.members {
		switch {
		case mm.id == c.agent || strings.HasPrefix(c.agent, mm.id+"."):
			return nil, "INVALID members"
		case names.OwnerOf(mm.id) != c.agent:
			return nil, "FOREIGN " + mm.id
		case mm.patience != "" && strings.HasPrefix(lastPart(mm.id), "s-"):
			return nil, "INVALID patience"
		case !slices.ContainsFunc(members, func(known modelMember) bool { return known.id == mm.id }):
			members = append(members, mm)
		}
	}
	return members, ""
}

// begun returns the wait as earlier parts have left it. It is a copy, since the call can still be
// refused.
func (t *modelTask) begun(c modelCall) (*modelWait, string) {
	w := &modelWait{pending: map[string]int64{}, masks: map[string]string{}}
	if c.fields["part"] != "1" {
		old := t.wait
		if old == nil || old.entry != c.fields["entry"] || old.epoch != fmt.Sprint(t.epoch) || engine.Number(old.part) != engine.Number(c.fields["part"])-1 ||
			old.fields["digest"] != c.fields["digest"] {
			return nil, "INVALID part"
		}
		*w = *old
		w.pending, w.masks, w.settled = maps.Clone(old.pending), maps.Clone(old.masks), slices.Clone(old.settled)
	}
	w.fields, w.entry, w.losers = c.fields, c.fields["entry"], c.fields["on_losers"]
	if c.fields["of"] != "1" && c.fields["part"] != c.fields["of"] {
		w.epoch, w.part = fmt.Sprint(t.epoch), c.fields["part"]
		calls := map[string]string{w.part: c.call}
		maps.Copy(calls, w.calls)
		w.calls = calls
	}
	return w, ""
}

// signal sends an agent a signal.
func (m *model) signal(call, agent, name, note string) string {
	defer m.done()
	id, line := agent+".s-"+name, "default"
	if owner := m.tasks[agent]; owner != nil {
		line = owner.queue()
	}
	f := map[string]string{"id": id, "kind": "signal", "role": "promise", "queue": line}
	made, answer := m.consider(f)
	if answer != "" && !strings.HasPrefix(answer, "OK ") {
		return answer
	} else if made != nil {
		if m.tasks[agent].given["role"] != "" {
			return "INVALID agent" // it cannot wait
		}
		m.admit(made, f)
	}
	switch t := m.touch(id); {
	case t.lives():
		t.call = call
		m.end(t, modelEnding{status: queue.Completed, at: m.now, result: note})
		return "OK"
	case t.call == call:
		return "OK"
	default:
		m.refuse(t, "signal", "")
		return "ALREADY " + string(t.status) + " " + cmp.Or(t.result, t.failure)
	}
}
