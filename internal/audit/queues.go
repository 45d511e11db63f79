package audit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// counters checks the numbers of running tasks and waiting agents that queues have counted.
func (a *audit) counters(running map[string]int64, waiting map[string]waitTally) {
	for key, hash := range a.Hashes {
		if name, ok := strings.CutPrefix(key, "queue:"); ok {
			a.cure = cure{what: "running"}
			a.must(engine.Number(hash["running"]) == running[name], name, "has counted %s running tasks, and there are %d", hash["running"], running[name])
			a.cure = cure{} // only a walk knows what to compare with
			text, _ := waiting[name].wrong(hash)
			a.must(text == "", name, "%s", text)
		}
	}
}

// queues checks the controls of queues, that queues, kinds and workers are listed, and that each line has
// at most one token.
func (a *audit) queues() {
	a.controls()
	a.settings()
	for key, hash := range a.Hashes {
		if name, ok := strings.CutPrefix(key, "queue:"); ok {
			a.cure = cure{what: "queue"}
			a.must(slices.Contains(a.Sets["queues"], name), name, "is not in the list of queues")
		}
		if kind, ok := strings.CutPrefix(key, "figures:"); ok {
			a.cure = cure{what: "kind"}
			a.must(slices.Contains(a.Sets["kinds"], kind), key, "is not in the list of kinds")
			a.figures(key, hash)
		}
		if name, ok := strings.CutPrefix(key, "worker:"); ok {
			a.cure = cure{what: "worker"}
			a.must(a.in("workers", name, ""), name, "is a worker that is not in workers, so nothing ends its lease")
		}
	}
	for key, list := range a.Lists {
		if strings.HasPrefix(key, "wake:") {
			a.cure = cure{what: "queue"}
			a.must(len(list) <= 1, key, "has more than one token")
		}
	}
	for key := range a.Zsets {
		if name, ok := strings.CutPrefix(key, "claims:"); ok {
			a.cure = cure{what: "worker"}
			a.must(a.in("workers", name, ""), name, "holds claims and is not in workers, so nothing ends its lease")
		}
	}
}

// figures checks that the counters of a kind are numbers.
func (a *audit) figures(key string, hash map[string]string) {
	for field, value := range hash {
		a.cure = cure{what: "figure", where: field}
		a.must(isFigure(field, value), key, "has counted %q in %q, and that is no count", refusal.Clip(value), refusal.Clip(field))
	}
}

// isFigure reports whether a field of a kind's figures has a valid count, or is the field "about" that describes the
// hash (lua/repair/repairs.lua has the same rule).
func isFigure(field, value string) bool {
	digits := strings.Trim(value, "0123456789") == ""
	return field == "about" || digits && len(value) > 0 && len(value) <= 16
}

// mostControlled is the number of queues that lua/queue/controls.lua checks for a control. If there are
// more, the root can have the field controlled though no queue has a control.
const mostControlled = 2000

// controls checks that scripts find every control, that a paused queue wakes no worker, and that only
// queues with a rate are throttled.
func (a *audit) controls() {
	controlled, queues := false, 0
	for key, hash := range a.Hashes {
		name, ok := strings.CutPrefix(key, "queue:")
		if !ok {
			continue
		}
		queues++
		rated := hash["rate"] != ""
		controlled = controlled || rated || hash["paused"] != "" || hash["max_running"] != "" || hash["max_length"] != ""
		a.cure = oddControl
		for _, control := range controls {
			value, set := hash[control]
			a.must(!set || isWhole(value, 1<<53), name, "has %s %q, which must be a whole number of at least 1", control, refusal.Clip(value))
		}
		a.cure = halfRate
		a.must(rated == (hash["per_ms"] != "") && rated == (hash["burst"] != ""), name, "must have all of rate, per_ms and burst, or none of them")
		a.cure = cure{what: "queue"}
		a.must(hash["paused"] == "" || len(a.Lists["wake:"+name]) == 0, name, "is paused and has a token that wakes a worker")
	}
	a.cure = cure{what: "controls"}
	if marked := a.Hashes[""]["controlled"] != ""; queues < mostControlled {
		a.must(controlled == marked, "controlled", "must be there if and only if a queue has a control")
	} else {
		a.must(!controlled || marked, "controlled", "must be there if a queue has a control")
	}
	a.cure = cure{what: "queue"}
	for name := range a.Zsets["throttled"] {
		a.must(a.Hashes["queue:"+name]["rate"] != "", name, "is in throttled and has no rate")
	}
}

// settingRules has the rule of each setting of a namespace, by its field in the root.
var settingRules = map[string]struct {
	text string
	fits func(value string) bool
}{
	"default_timeout_ms": {"a whole number from 1 to 2^52, or none", func(v string) bool { return v == "none" || isWhole(v, 1<<52) }},
	"event_mib":          {"a whole number from 1 to 65536", func(v string) bool { return isWhole(v, 65536) }},
	"events":             {"all, terminal or none", func(v string) bool { return v == "all" || v == "terminal" || v == "none" }},
	"figures":            {"on or off", func(v string) bool { return v == "on" || v == "off" }},
}

// settings checks the settings of the namespace, which each call reads (lua/check/values.lua has the same rules).
func (a *audit) settings() {
	a.cure = oddSetting
	for name, rule := range settingRules {
		value, set := a.Hashes[""][name]
		a.must(!set || rule.fits(value), name, "is %q, and must be %s", refusal.Clip(value), rule.text)
	}
}

// isWhole reports whether a text is a whole number from 1 to most.
func isWhole(text string, most uint64) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && 1 <= n && n <= most
}

// keys checks that an idempotency key leads to its task for the whole time of its scope, and is removed after that.
func (a *audit) keys() {
	a.cure = cure{what: "key"}
	for key := range a.Zsets["forget"] {
		_, ok := a.Hashes["idem"][key]
		a.must(ok, key, "is an idempotency key in forget that does not exist")
	}
	for key, value := range a.Hashes["idem"] {
		id, _, _ := strings.Cut(value, " ")
		t, ok := a.Tasks[id]
		_, leaving := a.Zsets["forget"][key]
		switch scope := t["idempotency_scope"]; {
		case !ok:
			a.must(leaving, key, "is an idempotency key whose task is gone, and nothing removes it")
			continue
		case scope == "":
			a.must(leaving == !Live(t), key, "is an idempotency key that must be in forget if and only if its task has ended")
		case scope == "window":
			a.must(leaving, key, "is an idempotency key with a window, and nothing removes it")
		case scope == "finished":
			a.must(Live(t) && !leaving, key, "is an idempotency key that must end with its task")
		case scope == "started":
			a.must(Live(t) && t["epoch"] == "" && !leaving, key, "is an idempotency key that must end when its task is first claimed")
		default:
			a.report(key, "is an idempotency key with the scope %q, which is not valid", scope)
		}
		a.must(t["idempotency_key"] == key, key, "is an idempotency key that its task %s does not have", id)
	}
}

// key checks that the idempotency key of a live task leads to that task.
func (a *audit) key(id string, t map[string]string) {
	key, scope := t["idempotency_key"], t["idempotency_scope"]
	if key == "" || !Live(t) || scope == "window" || scope == "started" && t["epoch"] != "" {
		return
	}
	first, _, _ := strings.Cut(a.Hashes["idem"][key], " ")
	a.must(first == id, id, "lives, and its idempotency key leads to %q", first)
}
