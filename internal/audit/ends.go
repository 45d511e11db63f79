package audit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
)

// collects checks a wait for the first end of any child: it has no members, and it has fired if there is an end that it
// must hand over.
func (a *audit) collects(id string, t, w map[string]string) {
	a.must(t["collects"] != "", id, "waits for the end of any child, and has no field collects")
	a.must(len(a.Zsets["pending:"+id]) == 0 && len(a.Lists["settled:"+id]) == 0 && w["members"] == "", id, "waits for the end of any child, and has members")
	if w["state"] == "open" {
		for _, name := range a.Lists["ends:"+id] {
			end := engine.Number(a.Tasks[id+"."+name]["completed_at"])
			a.must(w["wait_deadline_at"] != "" && end > engine.Number(w["wait_deadline_at"]), id, "waits, and %s had ended before", name)
		}
		return
	}
	switch w["reason"] {
	case "timed_out":
		a.must(w["wait_deadline_at"] != "" && w["winner"] == "", id, "has a wait that timed out without a limit, or with a winner")
	default:
		a.must(slices.Contains(a.Lists["ends:"+id], w["winner"]), id, "has a wait that fired by the end of %q, which it cannot hand over", w["winner"])
	}
}

// ends checks that the ends which agents were not given yet are ends of their children, and that their agents live.
func (a *audit) ends() {
	for key, names := range a.Lists {
		id, ok := strings.CutPrefix(key, "ends:")
		if !ok {
			continue
		}
		a.cure = ofTask("")
		a.ofAgent(key, id)
		a.must(a.Tasks[id]["collects"] != "", id, "has the key %s, and no field collects", key)
		a.cure = cure{what: "ends"}
		seen := make(map[string]bool, len(names))
		for _, name := range names {
			child, exists := a.Tasks[id+"."+name]
			a.must(exists && !Live(child), id, "has the end of %s, which lives or does not exist", name)
			a.must(!seen[name], id, "has the end of %s twice", name)
			seen[name] = true
		}
	}
}

// lostEnds checks that an agent which collects was given all ends of its children, or still has them in its list.
func (a *audit) lostEnds() {
	counts := map[string]int64{}
	for id, t := range a.Tasks {
		if owner := a.Tasks[names.OwnerOf(id)]; owner["collects"] != "" && Live(owner) && !Live(t) {
			counts[names.OwnerOf(id)]++
		}
	}
	for id, n := range counts {
		a.lost(id, n, engine.Number(a.Tasks[id]["collects"]), int64(len(a.Lists["ends:"+id])))
	}
}

func (a *audit) lost(id string, ended, given, kept int64) {
	a.cure = cure{what: "ends"}
	a.must(ended <= given+kept, id, "has %d children that have ended: it was given %d of these ends, and %d are kept for it", ended, given, kept)
}

// lookAtEnds makes the check of lostEnds. A child that had ended when the walk read it is by now in the list of its owner or
// in the count of its owner. The list is read before the count, and an end that moves between the two readings is in both.
// So tasks that change meanwhile cause no finding.
func (w *walk) lookAtEnds(ctx context.Context) error {
	counts := map[string]int64{}
	for id, t := range w.tasks {
		if owner := w.tasks[names.OwnerOf(id)]; owner.collects && t.ended {
			counts[names.OwnerOf(id)]++
		}
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(counts)), together) {
		lengths := make([]*redis.Cmd, len(chunk))
		for i, id := range chunk {
			lengths[i] = w.command(ctx, "llen", "ends:"+id)
		}
		if err := w.ask(ctx, lengths); err != nil {
			return err
		}
		s := newSnapshot()
		if err := w.readTasks(ctx, s, slices.Clone(chunk)); err != nil {
			return err
		}
		a := audit{Snapshot: s, partition: w.partition}
		for i, id := range chunk {
			n, _ := lengths[i].Int64()
			if t, ok := s.Tasks[id]; ok && Live(t) {
				a.lost(id, counts[id], engine.Number(t["collects"]), n)
			}
		}
		w.findings = append(w.findings, a.findings...)
	}
	return nil
}
