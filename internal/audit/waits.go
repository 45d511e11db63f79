package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// waits checks an agent and its current wait: that it waits for something, that the wait can still be
// decided, and that a sweep finds it when its time is over.
func (a *audit) waits(id string, t map[string]string, status queue.Status) {
	w, ok := a.Hashes["wait:"+id]
	a.cure = ofWait(t)
	a.must(ok == (t["waiting"] != ""), id, "must have the field waiting if and only if there is a wait:%s", id)
	state := w["state"]
	a.must((status == queue.Waiting) == (state == "open" || state == "fired"), id, "is %s, and its wait is %q: it must be WAITING if and only if the wait is open or fired", status, state)
	a.must(!ok || w["entry"] == t["waiting"], id, "is at the wait %q according to its record, and its wait is %q", t["waiting"], w["entry"])
	a.cure = contradiction
	a.attempt(id, t, status)
	a.cure = ofTask("")
	a.clock(id, t, w)
	a.cure = ofWait(t)
	if !ok {
		a.must(a.Zsets["pending:"+id] == nil && a.Lists["settled:"+id] == nil, id, "has members of a wait, and no wait")
		return
	}
	a.must(Live(t), id, "is at a wait and is %s", status)
	a.must(slices.Contains([]string{"open", "fired", "forming"}, state), id, "has a wait with the state %q, which is not valid", state)
	a.must(state != "forming" || status == queue.Running && w["epoch"] == t["epoch"], id, "has a forming wait that another claim began")
	if w["mode"] == string(queue.WaitCollect) && state != "forming" {
		a.collects(id, t, w)
	} else {
		a.members(id, w)
		a.counted(id, w)
	}
	if status == queue.Waiting {
		a.cure = contradiction
		a.must(t["suspended_by"] != "" && t["journal"] == "1" && t["worker"] == "" && t["role"] == "", id,
			"is WAITING, and must have suspended_by and journal, no worker and no role")
	}
}

// attempt checks that an attempt and its limit continue while the agent waits, and while it is in line
// because it was woken, and at no other time.
func (a *audit) attempt(id string, t map[string]string, status queue.Status) {
	if !Live(t) {
		return // an ended task keeps the fields of its last attempt
	}
	woken := t["woken"] != ""
	a.must(!woken || status == queue.Pending && t["available_at"] == "", id, "was woken, and is not in line")
	a.must(t["attempt_at"] == "" || woken || status == queue.Waiting, id, "has attempt_at, and neither waits nor was woken")
	if status == queue.Waiting {
		a.must(t["attempt_at"] == t["limit_at"], id, "is WAITING with attempt_at %q and limit_at %q, which must be equal", t["attempt_at"], t["limit_at"])
	}
	if final := cmp.Or(t["until"], t["deadline_at"]); woken && t["attempt_at"] != "" && (final == "" || engine.Number(t["attempt_at"]) < engine.Number(final)) {
		a.must(t["limit_at"] != "" && engine.Number(t["limit_at"]) <= engine.Number(t["attempt_at"]), id, "was woken, and nothing ends its attempt")
	}
}

// clock checks that a wait is in waits at the instant of its limit or of the first patience, or while it has
// losers left to end, and that no other wait is.
func (a *audit) clock(id string, t, w map[string]string) {
	_, ok := a.Zsets["waits"][id]
	switch w["state"] {
	case "open":
		first := w["wait_deadline_at"]
		for _, at := range a.Zsets["patience:"+id] {
			if first == "" || int64(at) < engine.Number(first) {
				first = fmt.Sprintf("%.0f", at)
			}
		}
		a.iff("waits", id, first, first != "")
	case "fired":
		// An agent that is out of time itself is not woken: its end is written instead.
		end := t["deadline_at"] + t["until"] + t["limit_at"]
		for owner := names.OwnerOf(id); owner != ""; owner = names.OwnerOf(owner) {
			if _, draining := a.Zsets["draining"][owner]; draining || a.Tasks[owner]["limit_at"] != "" {
				end = "with its owner"
			}
		}
		// Nor is an agent woken whose own limit in its owner's wait is over: the sweep looks at it again.
		a.must(ok || end != "", id, "has a wait that fired, and nothing wakes it")
	default:
		a.must(!ok, id, "must not be in waits")
	}
}

// members checks that no member is both pending and settled, and that each member of an open wait is one of
// them. A member is pending while it lives. It stays pending if it ended after the limit of the wait.
func (a *audit) members(id string, w map[string]string) {
	names := strings.Fields(w["members"])
	pending, settled := a.Zsets["pending:"+id], a.Lists["settled:"+id]
	var limit string
	if until := strings.Fields(a.Hashes["journal:"+id]["until"]); len(until) > 1 && until[0] == w["entry"] && until[1] != "none" {
		limit = until[1]
	}
	seen, isSettled := map[string]bool{}, map[string]bool{}
	for _, name := range settled {
		isSettled[name] = true
	}
	for _, name := range names {
		a.must(!seen[name], id, "waits for %s twice", name)
		seen[name] = true
		_, waits := pending[name]
		has := isSettled[name]
		a.must(!(waits && has), id, "has a member %s that is both pending and settled", name)
		if w["state"] != "fired" {
			a.must(waits || has, id, "has a member %s that is neither pending nor settled", name)
		}
		member, ok := a.Tasks[id+"."+name]
		before := a.cure
		a.cure = memberLost
		a.must(ok, id, "waits for %s, and there is no such task", name)
		a.cure = before
		a.must(!has || !Live(member), id, "has settled %s, which lives", name)
		if deadline := cmp.Or(w["wait_deadline_at"], limit); waits && ok && w["state"] != "fired" {
			late := deadline != "" && engine.Number(member["completed_at"]) > engine.Number(deadline)
			a.must(Live(member) || late, id, "waits for %s, which ended before the limit", name)
		}
	}
	a.must(engine.Number(w["size"]) == int64(len(names)), id, "has a wait of %s members, and lists %d", w["size"], len(names))
	for name := range pending {
		a.must(seen[name], id, "waits for %s, which is not a member", name)
	}
	for _, name := range settled {
		a.must(seen[name], id, "has settled %s, which is not a member", name)
	}
	if w["state"] == "open" {
		a.must(len(pending) > 0, id, "waits for nothing")
	}
}

// counted checks that the counters of a wait match the ends of its members, and that the wait has fired if and only
// if they decide it.
func (a *audit) counted(id string, w map[string]string) {
	settled := a.Lists["settled:"+id]
	var ok, bad int64
	for _, name := range settled {
		switch regard(cmp.Or(w["mask "+name], w["mask"]), a.Tasks[id+"."+name]) {
		case 'o':
			ok++
		case 'b':
			bad++
		}
	}
	a.must(engine.Number(w["settled"]) == int64(len(settled)), id, "has counted %s ends, and there are %d", w["settled"], len(settled))
	a.must(engine.Number(w["ok"]) == ok && engine.Number(w["bad"]) == bad, id, "has counted %s ok and %s bad ends, and there are %d and %d", w["ok"], w["bad"], ok, bad)
	if w["state"] == "forming" {
		return
	}
	a.must(engine.Number(w["all"]) <= engine.Number(w["size"]), id, "waits for more ends than it has members")
	a.must(w["limit_ms"] == "" || len(settled) == 0 || w["wait_deadline_at"] != "", id, "has a limit that began with the first end, and no wait_deadline_at")
	enough := w["need_ok"] != "" && ok >= engine.Number(w["need_ok"]) || w["most_bad"] != "" && bad >= engine.Number(w["most_bad"]) ||
		int64(len(settled)) >= engine.Number(w["all"])
	if w["state"] == "open" {
		a.must(!enough, id, "has an open wait that is decided")
		a.must(w["reason"] == "" && w["winner"] == "", id, "has an open wait with a reason or a winner")
		return
	}
	switch reason := w["reason"]; reason {
	case "timed_out":
		a.must(!enough && w["wait_deadline_at"] != "" && w["winner"] == "", id, "has a wait that timed out, and was decided before")
	default:
		a.must(reason != "" && (enough || w["mode"] == "all" && bad > 0), id, "has a wait that fired with the reason %q, and is not decided", reason)
		a.must(w["winner"] == "" || slices.Contains(settled, w["winner"]), id, "has a winner %s that has not settled", w["winner"])
	}
}

// regard returns how the wait counts an ended member: 'o', 'b' or 'n' (lua/agent/rules.lua).
func regard(mask string, t map[string]string) byte {
	place := 1
	switch {
	case t["status"] == string(queue.Completed):
		place = 0
	case t["status"] == string(queue.Cancelled):
		place = 4
	case t["reason"] == "failed" || t["timeout_type"] != "" && t["error"] == failedRun:
		place = 2
	case t["reason"] == "timeout":
		place = 3
	}
	if place >= len(mask) {
		return 0
	}
	return mask[place]
}

// remembered checks that waits and journals belong to live agents, and that the size of a journal is right.
func (a *audit) remembered() {
	for key, f := range a.Hashes {
		kind, id, _ := strings.Cut(key, ":")
		a.cure = ofTask("")
		if kind == "wait" || kind == "journal" {
			a.ofAgent(key, id)
		}
		if kind == "journal" {
			a.cure = ofTask("journal")
			a.must(a.Tasks[id]["journal"] == "1", id, "has a journal, and its record has no field journal")
			var size int64
			for name, text := range f {
				if engine.Number(name) > 0 && engine.Number(name) < 1<<53 {
					size += int64(len(text))
				}
			}
			a.must(engine.Number(f["bytes"]) == size, id, "has a journal of %d bytes, and has counted %s", size, f["bytes"])
		}
	}
	a.cure = ofTask("")
	a.ends()
	a.cure = ofTask("")
	for key := range a.Lists {
		if id, ok := strings.CutPrefix(key, "settled:"); ok {
			a.ofAgent(key, id)
		}
	}
	for key := range a.Zsets {
		if kind, id, ok := strings.Cut(key, ":"); ok && (kind == "pending" || kind == "patience") {
			a.ofAgent(key, id)
		}
	}
}

// ofAgent checks that a key belongs to an agent that lives.
func (a *audit) ofAgent(key, id string) {
	t, ok := a.Tasks[id]
	a.must(ok && Live(t), id, "has the key %s, and has ended or has no record", key)
}
