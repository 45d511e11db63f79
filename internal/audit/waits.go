package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// waits checks an agent and the wait that it is at: that it waits for something, that
// the wait can still come to its end, and that somebody looks at it when its time is up.
func (a *audit) waits(id string, t map[string]string, status queue.Status) {
	w, there := a.Hashes["wait:"+id]
	a.must(there == (t["waiting"] != ""), id, "must have the field waiting if and only if there is a wait:%s", id)
	state := w["state"]
	a.must((status == queue.Waiting) == (state == "open" || state == "fired"), id, "is %s, and its wait is %q: WAITING goes with one that is open or has fired", status, state)
	a.must(!there || w["entry"] == t["waiting"], id, "is at the wait %q by its record, and its wait is %q", t["waiting"], w["entry"])
	a.attempt(id, t, status)
	a.looked(id, t, w)
	if !there {
		a.must(a.Zsets["pending:"+id] == nil && a.Lists["settled:"+id] == nil, id, "has members of a wait, and no wait")
		return
	}
	a.must(Live(t), id, "is at a wait and is %s", status)
	a.must(slices.Contains([]string{"open", "fired", "forming"}, state), id, "has a wait that is %q", state)
	a.must(state != "forming" || status == queue.Running && w["epoch"] == t["epoch"], id, "begins a wait, and is not the claim that did")
	a.members(id, w)
	a.counted(id, w)
	if status == queue.Waiting {
		a.must(t["suspended_by"] != "" && t["journal"] == "1" && t["worker"] == "" && t["role"] == "", id,
			"is WAITING and must have suspended_by and journal, no worker and no role")
	}
}

// attempt checks that an attempt goes on, with its limit, while the agent waits and while
// it stands in line because it was woken, and at no other time.
func (a *audit) attempt(id string, t map[string]string, status queue.Status) {
	if !Live(t) {
		return // it keeps what it had
	}
	woken := t["woken"] != ""
	a.must(!woken || status == queue.Pending && t["available_at"] == "", id, "was woken, and does not stand in line")
	a.must(t["attempt_at"] == "" || woken || status == queue.Waiting, id, "has attempt_at, and neither waits nor was woken")
	if status == queue.Waiting {
		a.must(t["attempt_at"] == t["limit_at"], id, "waits until %s of its attempt, and the clock has %s", t["attempt_at"], t["limit_at"])
	}
	if final := firstOf(t["until"], t["deadline_at"]); woken && t["attempt_at"] != "" && (final == "" || engine.Number(t["attempt_at"]) < engine.Number(final)) {
		a.must(t["limit_at"] != "" && engine.Number(t["limit_at"]) <= engine.Number(t["attempt_at"]), id, "was woken, and nothing ends its attempt")
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// looked checks that the sweep looks at a wait when its limit or a patience is over, or
// while it has losers left to end, and at no other.
func (a *audit) looked(id string, t, w map[string]string) {
	_, there := a.Zsets["waits"][id]
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
		// One that is not woken because it is out of time itself is ended by that.
		ends := t["deadline_at"] + t["until"] + t["limit_at"]
		for of := names.OwnerOf(id); of != ""; of = names.OwnerOf(of) {
			if _, draining := a.Zsets["draining"][of]; draining {
				ends = "with its owner"
			}
		}
		a.must(there && w["losers"] == "cancel" || ends != "", id, "has a wait that fired, and nothing wakes it")
	default:
		a.must(!there, id, "must not be in waits")
	}
}

// members checks that each member is pending or has settled, and not both; of an open
// wait all of them. A member is pending as long as it lives; one that ended after the
// wait's limit stays so.
func (a *audit) members(id string, w map[string]string) {
	names := strings.Fields(w["members"])
	pending, settled := a.Zsets["pending:"+id], a.Lists["settled:"+id]
	var kept string
	if until := strings.Fields(a.Hashes["journal:"+id]["until"]); len(until) > 1 && until[0] == w["entry"] && until[1] != "none" {
		kept = until[1]
	}
	seen, ended := map[string]bool{}, map[string]bool{}
	for _, name := range settled {
		ended[name] = true
	}
	for _, name := range names {
		a.must(!seen[name], id, "waits for %s twice", name)
		seen[name] = true
		_, waits := pending[name]
		has := ended[name]
		a.must(!(waits && has), id, "has a member %s that is pending and has settled", name)
		if w["state"] != "fired" {
			a.must(waits || has, id, "has a member %s that is neither pending nor has settled", name)
		}
		member, known := a.Tasks[id+"."+name]
		a.must(known, id, "waits for %s, and there is no such task", name)
		a.must(!has || !Live(member), id, "has settled %s, which lives", name)
		if ends := firstOf(w["wait_deadline_at"], kept); waits && known && w["state"] != "fired" {
			late := ends != "" && engine.Number(member["completed_at"]) > engine.Number(ends)
			a.must(Live(member) || late, id, "waits for %s, which ended in time", name)
		}
	}
	a.must(engine.Number(w["size"]) == int64(len(names)), id, "has a wait of %s members, and they are %d", w["size"], len(names))
	for name := range pending {
		a.must(seen[name], id, "waits for %s, which is no member", name)
	}
	for _, name := range settled {
		a.must(seen[name], id, "has settled %s, which is no member", name)
	}
	if w["state"] == "open" {
		a.must(len(pending) > 0, id, "waits for nothing")
	}
}

// counted checks what a wait has counted against how its members ended, and that it
// fired if and only if that was enough.
func (a *audit) counted(id string, w map[string]string) {
	settled := a.Lists["settled:"+id]
	var ok, bad int64
	for _, name := range settled {
		switch regard(firstOf(w["mask "+name], w["mask"]), a.Tasks[id+"."+name]) {
		case 'o':
			ok++
		case 'b':
			bad++
		}
	}
	a.must(engine.Number(w["settled"]) == int64(len(settled)), id, "has counted %s ends, and they are %d", w["settled"], len(settled))
	a.must(engine.Number(w["ok"]) == ok && engine.Number(w["bad"]) == bad, id, "has counted %s ok and %s bad, and they are %d and %d", w["ok"], w["bad"], ok, bad)
	if w["state"] == "forming" {
		return
	}
	a.must(engine.Number(w["all"]) <= engine.Number(w["size"]), id, "waits for more ends than it has members")
	a.must(w["limit_ms"] == "" || len(settled) == 0 || w["wait_deadline_at"] != "", id, "has a limit from the first end, which came, and no instant")
	enough := w["need_ok"] != "" && ok >= engine.Number(w["need_ok"]) || w["most_bad"] != "" && bad >= engine.Number(w["most_bad"]) ||
		int64(len(settled)) >= engine.Number(w["all"])
	if w["state"] == "open" {
		a.must(!enough, id, "has a wait that is over, and that is open")
		a.must(w["reason"] == "" && w["winner"] == "", id, "has an open wait with a reason or a winner")
		return
	}
	switch reason := w["reason"]; reason {
	case "timed_out":
		a.must(!enough && w["wait_deadline_at"] != "" && w["winner"] == "", id, "has a wait that timed out, and was over before")
	default:
		a.must(reason != "" && (enough || w["mode"] == "all" && bad > 0), id, "has a wait that fired for the reason %q, and is not over", reason)
		a.must(w["winner"] == "" || slices.Contains(settled, w["winner"]), id, "has a winner %s that has not settled", w["winner"])
	}
}

// regard is what a member that ended counts as (lua/wait/counts_as.lua).
func regard(mask string, t map[string]string) byte {
	place := 1
	switch {
	case t["status"] == string(queue.Completed):
		place = 0
	case t["status"] == string(queue.Cancelled):
		place = 4
	case t["reason"] == "failed" || t["timeout_type"] == "execution" && t["on_deadline"] == "fail":
		place = 2
	case t["reason"] == "timeout":
		place = 3
	}
	if place >= len(mask) {
		return 0
	}
	return mask[place]
}

// remembered checks that what is kept for agents goes with them.
func (a *audit) remembered() {
	for key, f := range a.Hashes {
		kind, id, _ := strings.Cut(key, ":")
		if kind == "wait" || kind == "journal" {
			a.kept(key, id)
		}
		if kind == "journal" {
			a.must(a.Tasks[id]["journal"] == "1", id, "has a journal, and its record does not say so")
			var size int64
			for name, text := range f {
				if engine.Number(name) > 0 && engine.Number(name) < 1<<53 {
					size += int64(len(text))
				}
			}
			a.must(engine.Number(f["bytes"]) == size, id, "has a journal of %d bytes, and counts %s", size, f["bytes"])
		}
	}
	for key := range a.Lists {
		if id, ok := strings.CutPrefix(key, "settled:"); ok {
			a.kept(key, id)
		}
	}
	for key := range a.Zsets {
		if kind, id, ok := strings.Cut(key, ":"); ok && (kind == "pending" || kind == "patience") {
			a.kept(key, id)
		}
	}
}

// kept checks that a key belongs to an agent that lives.
func (a *audit) kept(key, id string) {
	t, known := a.Tasks[id]
	a.must(known && Live(t), id, "has %s, and does not live", key)
}
