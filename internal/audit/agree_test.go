package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The audit has its rules in Go, and the repair in Lua, so that the audit does not believe the code that it watches
// (docs/decisions/0056-audit-and-repair.md). For each task, its entry in each sorted set is taken away, added or moved, and each key of
// its own that it lacks is made: the audit must find that if and only if the repair would change something.
func TestAuditAndRepairAgreeOnEachEntry(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	q := furnished(t, redistest.Shared(t).Client(t))
	timed(t, q)
	sound, err := Read(t.Context(), q, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := sound.Check(0); len(found) > 0 {
		t.Fatalf("the audit finds %v before anything is damaged", found)
	}
	n := 0
	for _, id := range slices.Sorted(maps.Keys(sound.Tasks)) {
		all := made(t, q, id)
		for _, key := range entryKeys(sound) {
			all = append(all, entries(sound, key, id)...)
		}
		for _, d := range all {
			n++
			compare(t, q, id, d)
		}
	}
	if n < 250 {
		t.Errorf("%d damages were compared, want 250 at least", n)
	}
}

// timed adds tasks with what furnished does not have: a limit of the line, a warning, a timer, a failed child of a live owner.
func timed(t *testing.T, q *queue.Queue) {
	t.Helper()
	for _, task := range []queue.Task{
		{ID: "0-l", Kind: "k", QueueTimeout: time.Hour},
		{ID: "0-n", Kind: "k", Timeout: 2 * time.Hour, WarnAt: 0.5},
		{ID: "0-r.t", Kind: "k", Timer: true, Delay: time.Hour},
		{ID: "0-r.p", Kind: "k", Promise: true},
	} {
		if _, err := q.Enqueue(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Reject(t.Context(), "0-r.p", "no"); err != nil {
		t.Fatal(err)
	}
}

// entryKeys returns the sorted sets whose members are tasks.
func entryKeys(s *Snapshot) (keys []string) {
	for kind, of := range keyTypes {
		switch {
		case of != "zset" || slices.Contains([]string{"workers", "throttled", "forget", "broken", "pending:", "patience:"}, kind):
		case strings.HasSuffix(kind, ":"):
			keys = append(keys, kind+"other")
			for key := range s.Zsets {
				if strings.HasPrefix(key, kind) {
					keys = append(keys, key)
				}
			}
		default:
			keys = append(keys, kind)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// damage is a command for a key, and the one that takes it back.
type damage struct {
	key          string
	does, undoes []any // without the key
}

// entries returns the damages of the entry of a task in a sorted set.
func entries(s *Snapshot, key, id string) []damage {
	score, there := s.Zsets[key][id]
	if !there {
		return []damage{{key, []any{"ZADD", 5, id}, []any{"ZREM", id}}}
	}
	back := []any{"ZADD", fmt.Sprintf("%.1f", score), id}
	all := []damage{{key, []any{"ZREM", id}, back}}
	if kind, _, named := strings.Cut(key, ":"); !named && kind != "draining" && kind != "retained" || kind == "dead" { // a record says the score
		all = append(all, damage{key, []any{"ZADD", score + 1, id}, back})
	}
	return all
}

// made returns the damages that make keys of a task that it lacks.
func made(t *testing.T, q *queue.Queue, id string) (all []damage) {
	for kind, does := range map[string][]any{
		"wait:": {"HSET", "state", "open"}, "journal:": {"HSET", "bytes", 3}, "pending:": {"ZADD", 1, "x"}, "patience:": {"ZADD", 1, "x"},
		"settled:": {"RPUSH", "x"}, "ends:": {"RPUSH", "x"},
	} {
		if n, err := q.Client().Exists(t.Context(), q.Root(0)+":"+kind+id).Result(); err != nil {
			t.Fatal(err)
		} else if n == 0 {
			all = append(all, damage{kind + id, does, []any{"DEL"}})
		}
	}
	return all
}

// compare damages the partition, compares what the audit finds with what the repair would do, and takes the damage back.
func compare(t *testing.T, q *queue.Queue, id string, d damage) {
	t.Helper()
	send := func(words []any) {
		if err := q.Client().Do(context.Background(), slices.Insert(slices.Clone(words), 1, any(q.Root(0)+":"+d.key))...).Err(); err != nil {
			t.Fatal(d.key, words, err)
		}
	}
	send(d.does)
	defer send(d.undoes)
	s, err := Read(t.Context(), q, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(s.Check(0), func(f Finding) bool { return f.Subject != id })
	asked := found
	if len(found) == 0 {
		asked = []Finding{{Subject: id, cure: ofTask(d.key)}}
	}
	remedies, err := Repair(t.Context(), q, 0, asked, true)
	if err != nil {
		t.Fatal(err)
	}
	changes := slices.ContainsFunc(remedies, func(r Remedy) bool { return len(r.Does) > 0 })
	if changes != (len(found) > 0) {
		t.Errorf("after %v of %s the audit finds %v, and the repair would do %v", d.does, d.key, found, remedies)
	}
}
