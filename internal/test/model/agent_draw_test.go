package model

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// drawChildren draws children to make, most of them new. It returns them, and the names of all
// children that the agent will have then.
func (p *player) drawChildren(t *rapid.T, agent string) (children []map[string]string, names []string) {
	for _, name := range append(slices.Clone(childNames), "s-go") {
		if p.m.tasks[agent+"."+name] != nil {
			names = append(names, name)
		}
	}
	if rapid.IntRange(0, 30).Draw(t, "crowd") == 30 {
		return p.crowd(agent), []string{"c1"}
	}
	for range rapid.SampledFrom([]int{1, 2, 3, 2, 0}).Draw(t, "children") {
		name := rapid.SampledFrom(childNames).Draw(t, "name")
		known := p.m.tasks[agent+"."+name] != nil || slices.Contains(names, name)
		if known && rapid.IntRange(0, 9).Draw(t, "again") < 9 {
			continue
		}
		id := agent + "." + name
		if rapid.IntRange(0, 60).Draw(t, "foreign child") == 60 {
			id += ".1"
		}
		children = append(children, p.drawChild(t, id))
		if !known {
			names = append(names, name)
		}
	}
	return children, names
}

// drawChild draws a child. Most children are plain, so that they end while an agent waits for
// them.
func (p *player) drawChild(t *rapid.T, id string) map[string]string {
	f := map[string]string{"id": id, "kind": "k", "queue": drawQueue.Draw(t, "queue")}
	switch rapid.SampledFrom([]string{"plain", "promise", "plain", "timer", "any", "limited"}).Draw(t, "child") {
	case "any":
		return p.drawFields(t, id)
	case "promise":
		f["role"] = "promise"
	case "timer":
		f["role"], f["available_at"] = "timer", fmt.Sprint(p.m.now+rapid.SampledFrom([]int64{1, 3, 5, 10}).Draw(t, "fires"))
	case "limited":
		f["deadline_at"] = fmt.Sprint(p.m.now + rapid.SampledFrom([]int64{2, 5, 10, 20}).Draw(t, "deadline"))
		f["on_deadline"] = rapid.SampledFrom([]string{"cancel_all", "fail"}).Draw(t, "policy")
	default:
		if priority := rapid.SampledFrom([]string{"", "", "1", "3"}).Draw(t, "priority"); priority != "" {
			f["priority"] = priority
		}
		if grace := rapid.SampledFrom([]string{"", "", "", "5"}).Draw(t, "grace"); grace != "" {
			f["cancel_grace_ms"], f["hook_cancel"] = grace, "h"
		}
	}
	return f
}

// crowd returns more children than one call can end.
func (p *player) crowd(agent string) (children []map[string]string) {
	for i := range 104 {
		children = append(children, map[string]string{"id": fmt.Sprint(agent, ".c", i), "kind": "k", "queue": "crowd", "role": "promise"})
	}
	return children
}

// drawMembers draws the members of a wait. Sometimes one is not a child of the agent.
func (p *player) drawMembers(t *rapid.T, agent string, names []string) (members []modelMember) {
	if len(names) == 1 && names[0] == "c1" {
		patience := rapid.SampledFrom([]string{"", "3", "10"}).Draw(t, "patience with a crowd")
		for i := range 104 {
			members = append(members, modelMember{id: fmt.Sprint(agent, ".c", i), patience: patience})
		}
		return members
	}
	for _, name := range names {
		if rapid.IntRange(0, 3).Draw(t, "not "+name) == 3 {
			continue
		}
		m := modelMember{id: agent + "." + name}
		m.patience = rapid.SampledFrom([]string{"", "", "", "", "1", "3", "5"}).Draw(t, "patience")
		m.mask = rapid.SampledFrom([]string{"", "", "", "", "ooooo", "obbbn", "bnooo"}).Draw(t, "mask")
		members = append(members, m)
	}
	if len(members) > 0 && rapid.IntRange(0, 7).Draw(t, "twice") == 7 {
		members = append(members, members[0])
	}
	if rapid.IntRange(0, 20).Draw(t, "strange") == 20 {
		id := rapid.SampledFrom([]string{agent, agent + ".none", "0-a", agent + ".1.x", "0-b.1"}).Draw(t, "member")
		members = append(members, modelMember{id: id})
	}
	return members
}

// drawWait draws the other fields of a wait. Its entry is the next one, or sometimes one that
// the agent has already reached.
func (p *player) drawWait(t *rapid.T, agent string, n int) map[string]string {
	entry := int64(1)
	if known := p.m.tasks[agent]; known != nil {
		for name := range known.notes {
			entry = max(entry, engine.Number(name)+1)
		}
		entry = max(entry, known.past()+1)
		if known.wait != nil {
			entry = engine.Number(known.wait.entry)
		}
	}
	if entry > 1 && rapid.IntRange(0, 4).Draw(t, "again") == 4 {
		entry = rapid.Int64Range(1, entry-1).Draw(t, "entry")
	}
	f := map[string]string{"entry": fmt.Sprint(entry), "part": "1", "of": "1", "label": "a label"}
	one := func(name string, values ...string) {
		f[name] = rapid.SampledFrom(values).Draw(t, name)
	}
	one("digest", "d1", "d1", "d1", "d1", "d1", "d2")
	one("mode", "all", "any", "n_of_m", "any_ok", "fail_fast", "n_settled", "settled", "all", "peek")
	one("from", "registered", "first", "registered", fmt.Sprint(p.m.now-rapid.Int64Range(0, 12).Draw(t, "since")))
	one("on_timeout", "fail", "proceed_with_available")
	one("on_pending", "cancel", "keep")
	one("on_losers", "keep", "cancel")
	one("mask", "obbbb", "obbbb", "obbbb", "obbbn", "ooooo")
	one("most", "200", "200", "200", "200", "200", "200", "2")
	if limit := rapid.SampledFrom([]string{"", "5", "10", "2", "1", "computed", ""}).Draw(t, "limit"); limit != "" {
		f["limit_ms"] = limit
	}
	if strings.HasPrefix(f["mode"], "n_") {
		f["need"] = fmt.Sprint(rapid.IntRange(0, n+rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "more than there are")).Draw(t, "need"))
	}
	return f
}

// collect makes the wait one for the next end of any child. Usually the agent begins to collect before it, if it does
// not collect yet.
func (p *player) collect(t *rapid.T, c *modelCall) {
	c.fields["mode"] = "collect"
	delete(c.fields, "need")
	if rapid.IntRange(0, 20).Draw(t, "collects members") < 20 {
		c.members = nil
	}
	if at := p.m.now - rapid.SampledFrom([]int64{0, 0, 1, 4, 8}).Draw(t, "since"); at < p.m.now {
		c.fields["from"] = fmt.Sprint(at)
	}
	if known := p.m.tasks[c.agent]; (known == nil || !known.collects) && rapid.IntRange(0, 7).Draw(t, "begins") < 7 {
		entry := engine.Number(c.fields["entry"])
		c.note.entries = append(slices.Clip(c.note.entries), modelEntry{fmt.Sprint(entry), "collect"})
		c.fields["entry"] = fmt.Sprint(entry + 1)
	}
}

// drawNote draws what an agent remembers; usually nothing.
func (p *player) drawNote(t *rapid.T, agent string) (n modelNote) {
	if rapid.IntRange(0, 5).Draw(t, "checkpoint") == 5 {
		n.checkpoint = map[string]string{"state": rapid.SampledFrom([]string{"s", "t"}).Draw(t, "state"), "children": "2",
			"entries": rapid.SampledFrom([]string{"1", "0", "3"}).Draw(t, "entries")}
	}
	if rapid.IntRange(0, 3).Draw(t, "notes") == 3 {
		for range rapid.IntRange(1, 2).Draw(t, "how many") {
			n.entries = append(n.entries, modelEntry{fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "number")),
				rapid.SampledFrom([]string{"step x", "", "now 1", "collect"}).Draw(t, "text")})
		}
	}
	return n
}

// awaited reports whether a task is a pending member of a wait.
func (m *model) awaited(t *modelTask) bool {
	owner := m.tasks[names.OwnerOf(t.id)]
	if owner == nil || owner.wait == nil {
		return false
	}
	_, pending := owner.wait.pending[lastPart(t.id)]
	return pending && t.lives()
}

// acts reports whether a task runs and has time left.
func (m *model) acts(t *modelTask) bool {
	final := t.final()
	return t.status == queue.Running && t.cancelled == 0 && (final == 0 || final >= m.now) && (t.limit == 0 || t.limit >= m.now)
}
