package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// membersTogether is about how many members of waits are read at a time.
const membersTogether = 1000

// brief is the part of a task's record that the walk keeps, to compare it with the sets. It is small, because there
// may be millions of tasks.
type brief struct {
	queue, worker, counted  int32 // numbers of names; counted is the counter of a waiting agent
	held                    int32 // number of the set in which it is held, or of ""
	ended, running, waiting bool
	listed                  bool // among its owner's children
	collects                bool // the ends of its children
}

// walk reads a partition once. Tasks may change meanwhile, so a suspect is read again before it is reported.
type walk struct {
	*reader
	tasks    map[string]brief
	words    []string            // names of queues, workers and counters
	numbers  map[string]int32    // their places in words
	named    map[string][]string // names of queues, workers and kinds, by kind of key
	findings []Finding
}

// Run reports where the records and indexes of a partition disagree. Each of its commands takes a few
// milliseconds at most. It keeps about 200 bytes per task in memory.
func Run(ctx context.Context, q *queue.Queue, partition int) ([]Finding, error) {
	w := walk{reader: &reader{Queue: q, partition: partition, root: q.Root(partition)},
		tasks: map[string]brief{}, numbers: map[string]int32{}, named: map[string][]string{}}
	before, err := w.tallies(ctx)
	if err != nil {
		return nil, err
	}
	for _, look := range []func(context.Context) error{w.lookAtKeys, w.lookAtSets, w.lookAtChildren, w.lookAtEnds, w.lookAtIdempotency, w.lookAtNames} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.lookAtTallies(ctx, before); err != nil {
		return nil, err
	}
	slices.SortFunc(w.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(w.findings), nil
}

// number returns a number for a name, so that each name is stored once.
func (w *walk) number(name string) int32 {
	n, ok := w.numbers[name]
	if !ok {
		n, name = int32(len(w.words)), strings.Clone(name)
		w.words, w.numbers[name] = append(w.words, name), n
	}
	return n
}

// lookAtKeys scans all keys and checks each task that has one.
func (w *walk) lookAtKeys(ctx context.Context) error {
	var ids, odd []string
	seen := map[string]bool{} // keys of queues, workers and kinds: a scan may return them twice
	err := w.eachKey(ctx, func(keys []string) error {
		types := make([]*redis.Cmd, len(keys))
		for i, key := range keys {
			types[i] = w.command(ctx, "type", strings.TrimPrefix(key, w.root+":"))
		}
		if err := w.ask(ctx, types); err != nil {
			return err
		}
		for i, key := range keys {
			name, kind, whose := splitKey(key, w.root)
			typ, _ := types[i].Text()
			want, ours := keyTypes[kind]
			switch {
			case typ == "none":
			case !ours || kind == "" || typ != want:
				odd = append(odd, name)
			case aTasks[kind]:
				if _, ok := w.tasks[whose]; !ok {
					ids = append(ids, whose)
				}
			case whose != "" && !seen[name]:
				seen[name] = true
				w.named[kind] = append(w.named[kind], whose)
			}
		}
		if len(ids) < together {
			return nil
		}
		err := w.lookAt(ctx, ids, nil)
		ids = nil
		return err
	})
	if err == nil {
		err = w.lookAt(ctx, ids, nil)
	}
	if err != nil {
		return err
	}
	return w.lookAtOdd(ctx, odd)
}

// aTasks lists the kinds of keys that end with the id of a task.
var aTasks = map[string]bool{"spec:": true, "state:": true, "payload:": true, "result:": true, "children:": true, "wait:": true, "pending:": true,
	"settled:": true, "patience:": true, "journal:": true, "ends:": true}

// lookAtOdd checks again the keys that do not belong to Curfew.
func (w *walk) lookAtOdd(ctx context.Context, odd []string) error {
	types := make([]*redis.Cmd, len(odd))
	for i, name := range odd {
		types[i] = w.command(ctx, "type", name)
	}
	err := w.ask(ctx, types)
	s := newSnapshot()
	for i, name := range odd {
		_, kind, _ := splitKey(name, "")
		if typ, _ := types[i].Text(); typ != "none" && (typ != keyTypes[kind] || kind == "") {
			s.Odd = append(s.Odd, name)
		}
	}
	a := audit{Snapshot: s, partition: w.partition}
	a.odd()
	w.findings = append(w.findings, a.findings...)
	return err
}

// lookAt checks tasks. also has the sets in which they were found. Agents are checked in groups whose
// waits have a bounded number of members.
func (w *walk) lookAt(ctx context.Context, ids, also []string) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for chunk := range slices.Chunk(ids, together) {
		sizes, err := w.agents(ctx, chunk)
		if err != nil {
			return err
		}
		var group, plain []string
		var members int64
		for _, id := range chunk {
			if n, agent := sizes[id]; !agent {
				plain = append(plain, id)
			} else if group, members = append(group, id), members+n; members >= membersTogether {
				if err := w.lookAtGroup(ctx, part{ids: group, also: also, agents: sizes}); err != nil {
					return err
				}
				group, members = nil, 0
			}
		}
		for _, group := range [][]string{group, plain} {
			if err := w.lookAtGroup(ctx, part{ids: group, also: also, agents: sizes}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) lookAtGroup(ctx context.Context, p part) error {
	if len(p.ids) == 0 {
		return nil
	}
	s, err := w.readPart(ctx, p)
	if err != nil {
		return err
	}
	for _, id := range p.ids {
		if t, ok := s.Tasks[id]; ok {
			status := queue.Status(t["status"])
			w.tasks[strings.Clone(id)] = brief{queue: w.number(t["queue"]), worker: w.number(t["worker"]), counted: w.number(t["counted_as"]), held: w.number(heldSet(t)),
				ended: status.Ended(), running: status == queue.Running, waiting: status == queue.Waiting,
				collects: t["collects"] != ""}
		}
	}
	suspects := map[string]bool{}
	for _, f := range s.checkTasks(w.partition, p.ids) {
		suspects[strings.TrimPrefix(f.Subject, "task:")] = true
	}
	return w.confirm(ctx, suspects, w.reread(ctx, p.also))
}

// reread returns a function that reads tasks and the sets in also, and checks the tasks.
func (w *walk) reread(ctx context.Context, also []string) func(ids []string) (*Snapshot, []Finding, error) {
	return func(ids []string) (*Snapshot, []Finding, error) {
		s, err := w.readPart(ctx, part{ids: ids, also: also, sure: true})
		if err != nil {
			return nil, nil, err
		}
		return s, s.checkTasks(w.partition, ids), nil
	}
}

// lookAtSets reads all sets of tasks, and checks the tasks that do not belong in a set.
func (w *walk) lookAtSets(ctx context.Context) error {
	keys := slices.Clone(clocks)
	for _, kind := range []string{"ready:", "held:", "dead:", "claims:"} {
		for _, name := range w.named[kind] {
			keys = append(keys, kind+name)
		}
	}
	for _, key := range keys {
		_, kind, name := splitKey(key, "")
		err := w.eachMember(ctx, key, func(members map[string]float64) error {
			var ids []string
			for id := range members {
				if t, ok := w.tasks[id]; !ok || !w.belongs(t, kind, name) {
					ids = append(ids, id)
				}
			}
			return w.lookAt(ctx, ids, []string{key})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// belongs reports whether a task may be in a set. It covers the sets that the check of a single task does not read.
func (w *walk) belongs(t brief, kind, name string) bool {
	switch kind {
	case "ready:":
		return !t.ended && t.queue == w.number(name)
	case "held:":
		return t.held == w.number(name)
	case "claims:":
		return t.running && t.worker == w.number(name)
	case "dead:":
		return t.ended && t.queue == w.number(name)
	case "retained", "draining":
		return t.ended
	}
	return true
}

// lookAtChildren reads all lists of children, and checks the children that are not in the list of their owner.
func (w *walk) lookAtChildren(ctx context.Context) error {
	owners, unlisted := map[string]bool{}, []string{}
	for id := range w.tasks {
		if owner, ok := w.tasks[names.OwnerOf(id)]; ok && !owner.ended {
			owners[names.OwnerOf(id)] = true
		}
	}
	for parent := range owners {
		err := w.eachElement(ctx, "children:"+parent, func(ids []string) {
			for _, id := range ids {
				if t, ok := w.tasks[id]; ok {
					t.listed = true
					w.tasks[strings.Clone(id)] = t
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for id, t := range w.tasks {
		if ownerID := names.OwnerOf(id); owners[ownerID] && !t.listed {
			unlisted = append(unlisted, id)
		}
	}
	for chunk := range slices.Chunk(unlisted, together) {
		suspects := map[string]bool{}
		for _, id := range chunk {
			suspects[id] = true
		}
		if err := w.confirm(ctx, suspects, w.reread(ctx, nil)); err != nil {
			return err
		}
	}
	return nil
}
