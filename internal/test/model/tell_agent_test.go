package model

import (
	"fmt"
	"maps"
	"strings"
)

// record returns the fields that must be stored of a wait.
func (w *modelWait) record() map[string]string {
	f := map[string]string{"state": w.state, "entry": w.entry, "mask": w.fields["mask"], "ok": fmt.Sprint(w.ok), "bad": fmt.Sprint(w.bad),
		"settled": fmt.Sprint(len(w.settled)), "size": fmt.Sprint(w.size), "members": strings.Join(w.members, " ")}
	for name, mask := range w.masks {
		f["masks"], f["mask "+name] = "1", mask
	}
	if w.patient {
		f["patient"] = "1"
	}
	if w.part != "" {
		f["epoch"], f["part"], f["longest"] = w.epoch, w.part, fmt.Sprint(w.formed)
		for part, call := range w.calls {
			f["call "+part] = call
		}
	}
	if w.state == "forming" {
		f["digest"], f["wait_deadline_at"] = w.fields["digest"], zeroless(w.ends)
		return f
	}
	maps.Copy(f, map[string]string{"mode": w.fields["mode"], "digest": w.fields["digest"], "label": w.fields["label"],
		"losers": w.losers, "on_pending": w.fields["on_pending"], "on_timeout": w.fields["on_timeout"], "all": fmt.Sprint(w.all),
		"reason": w.reason, "winner": w.winner})
	for name, n := range map[string]int64{"since": w.since, "need_ok": w.needOK, "most_bad": w.mostBad, "wait_deadline_at": w.ends, "first_at": w.first, "fired_at": w.fired} {
		f[name] = zeroless(n)
	}
	if w.fields["from"] == "first" {
		f["limit_ms"] = zeroless(w.span)
	}
	return f
}

// agentLines returns what must be stored of an agent beside its record.
func (t *modelTask) agentLines() (lines []string) {
	if len(t.notes) > 0 {
		lines = append(lines, "journal:"+t.id+" "+formatFields(t.notes))
	}
	if len(t.ends) > 0 {
		lines = append(lines, fmt.Sprint("ends:", t.id, " ", t.ends))
	}
	if t.wait != nil {
		lines = append(lines, "wait:"+t.id+" "+formatFields(t.wait.record()))
		if len(t.wait.settled) > 0 {
			lines = append(lines, fmt.Sprint("settled:", t.id, " ", t.wait.settled))
		}
	}
	return lines
}
