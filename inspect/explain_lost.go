package inspect

import (
	"slices"
	"strings"
)

// lostWarnings holds a warning for each index that may lack a task (lua/explain/facts.lua has the
// names).
var lostWarnings = []struct{ index, text string }{
	{"deadlines", "it is not on the clock of deadlines, so its deadline is enforced only when a call touches it: see Audit, or cancel it"},
	{"limits", "it is not on the clock of limits, so the limit of its line or attempt, its warning and its grace are enforced only when a call touches it: see Audit, or cancel it"},
	{"delayed", "it is not on the clock of delayed tasks, so nothing starts or completes it at its time: see Audit, or cancel it"},
	{"held", "it is held, and not among the held tasks, so nothing puts it back in line: run curfew fsck --repair, or cancel it"},
	{"owner", "its owner is not on the clock of deadlines, so the deadline of the owner is enforced only when a call touches one of them: see Audit, or cancel the owner"},
	{"claims", "its worker does not hold it, so it is not given back when the lease of the worker expires: see Audit, or cancel it"},
	{"lease", "its worker is not on the clock of workers, so no sweep gives the task back if the worker is gone: then cancel it"},
	{"waits", "its wait is not on the clock of waits, so its limit and its patience are not enforced, and losers are not ended: see Audit, or cancel it"},
}

// lacks reports whether the task is missing from an index.
func (o *observed) lacks(index string) bool {
	return slices.Contains(strings.Fields(o.facts["lacks"]), index)
}

// explainLost warns if the task or a member is missing from an index. Then its bounds are enforced only when a
// call touches it.
func (o *observed) explainLost(e *Explanation) {
	for _, l := range lostWarnings {
		decided := e.Bound.Kind == BoundDecided && e.Why != WhyWaking // without its wait on the clock, an agent that is out of time is not woken
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
		e.warn(WarnLost, "members are missing from indexes, so their bounds are enforced only when a call touches them: see Audit, or cancel them", members...)
	}
}
