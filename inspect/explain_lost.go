package inspect

import (
	"slices"
	"strings"
)

// lost is what to say of a task that an index lacks (lua/explain/lacks.lua has the names).
var lost = []struct{ index, text string }{
	{"deadlines", "it is not on the clock of deadlines, so its deadline is kept only when a call meets it: see Audit, or cancel it"},
	{"limits", "it is not on the clock of limits, so the limit of its line or attempt, its warning and its grace are kept only when a call meets it: see Audit, or cancel it"},
	{"delayed", "it is not on the clock of delayed tasks, so nothing starts or completes it at its time: see Audit, or cancel it"},
	{"owner", "its owner is not on the clock of deadlines, so the deadline of the owner is kept only when a call meets one of them: see Audit, or cancel the owner"},
	{"claims", "its worker does not hold it, so it is not given back when the lease of the worker is over: see Audit, or cancel it"},
	{"lease", "its worker is not among those that live, so no sweep finds that its lease is over: it goes on only if the worker does; otherwise cancel it"},
	{"waits", "its wait is not on the clock of waits, so its limit and those of members in it are not kept, and losers are not ended: see Audit, or cancel it"},
}

// lacks tells whether an index lacks the task.
func (o *observed) lacks(index string) bool {
	return slices.Contains(strings.Fields(o.facts["lacks"]), index)
}

// explainLost warns of what stands on no index that anything would find it by: what is said of its future then holds only
// when a call meets it.
func (o *observed) explainLost(e *Explanation) {
	for _, l := range lost {
		decided := e.Bound.Kind == BoundDecided && e.Why != WhyWaking // an agent that is out of time is not woken
		if o.lacks(l.index) && !(l.index == "waits" && decided) {
			e.warn(WarnLost, l.text, o.id)
		}
	}
	var members []string
	for _, m := range o.members {
		if m.fields["lacks"] != "" {
			members = append(members, m.id)
		}
	}
	if len(members) > 0 {
		e.warn(WarnLost, "members are missing in indexes, so that what bounds them is kept only when a call meets them: see Audit, or cancel them", members...)
	}
}
