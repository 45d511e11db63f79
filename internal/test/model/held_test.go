package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// How tasks are held that no live worker can run.

// heldSet returns the set in which a task is held.
func (t *modelTask) heldSet() string {
	switch {
	case !t.isSuspect():
		return t.unhandledSet()
	case t.losses == 1:
		return t.unhandledSet() + ",!few"
	}
	return t.unhandledSet() + ",!alone"
}

// unhandledSet returns the set in which a task is held if no worker has a handler for its kind.
func (t *modelTask) unhandledSet() string { return t.queue() + "," + t.given["kind"] }

func (t *modelTask) isHeld() bool { return t.status == queue.Pending && t.heldAt != 0 || t.isSuspect() }

// heldIn returns the tasks of a set, in order.
func (m *model) heldIn(set string) []*modelTask {
	var held []*modelTask
	for _, t := range m.tasks {
		if t.isHeld() && t.heldSet() == set {
			held = append(held, t)
		}
	}
	slices.SortFunc(held, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(b.ms("priority"), a.ms("priority")), cmp.Compare(a.place, b.place))
	})
	return held
}

// heldSets returns how many tasks each set has.
func (m *model) heldSets() map[string]int64 {
	n := map[string]int64{}
	for _, t := range m.tasks {
		if t.isHeld() {
			n[t.heldSet()]++
		}
	}
	return n
}

// setsOf returns the sets of a queue.
func (m *model) setsOf(line string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.heldSets())), func(set string) bool { return !strings.HasPrefix(set, line+",") })
}

// lackedBy returns the kinds for which a worker is known to have no handler, with a space before and after each.
func (m *model) lackedBy(worker string) string {
	if at := m.lacksAt[worker]; at > m.now || m.now-at >= 60_000 {
		return ""
	}
	return m.lacks[worker]
}

// fits reports whether a worker may have a handler for the tasks of a set.
func (m *model) fits(worker, set string) bool {
	_, kind, _ := strings.Cut(set, ",")
	kind, _, _ = strings.Cut(kind, ",")
	if handles := m.handles[worker]; handles != "" {
		return strings.Contains(handles, " "+kind+" ")
	}
	return !strings.Contains(m.lackedBy(worker), " "+kind+" ")
}

// passes reports whether a task that a worker gives back goes back in line, and is not held, because a live worker has a handler for
// it. A call decides once for each set.
func (m *model) passes(t *modelTask, worker string) bool {
	set := t.unhandledSet()
	if _, known := m.passed[set]; !known {
		for other := range m.handles {
			m.passed[set] = m.passed[set] || other != worker && m.workers[other] >= m.now && m.fits(other, set)
		}
		m.passed[set] = m.passed[set] && m.heldBefore[set] == 0
	}
	return m.passed[set] && t.passedOn < 5
}

// learn notes that a worker has no handler for a kind.
func (m *model) learn(worker, kind string) {
	lacks := m.lackedBy(worker)
	if _, live := m.workers[worker]; !live || m.handles[worker] != "" || strings.Contains(lacks, " "+kind+" ") {
		return
	}
	if lacks == "" {
		m.lacksAt[worker] = m.now
	}
	m.lacks[worker] = cmp.Or(lacks, " ") + kind + " "
}

// hold holds a task. If line is not 0, its time in line is over at that instant.
func (m *model) hold(t *modelTask, line int64) {
	m.emit("task_held", t.id)
	m.endAttempt(t)
	t.held, t.heldAt = "unhandled", m.now
	if span := t.ms("queue_timeout_ms"); span != 0 && line == 0 {
		line = m.now + span
	}
	m.setLimit(t, line)
	m.seq++
	t.place = m.seq
}

// fitting returns the tasks of a queue that are held and that a worker may be able to run: those of sets with this end, or
// with "" those that are no suspects.
func (m *model) fitting(worker, line, end string) []*modelTask {
	var tasks []*modelTask
	for _, set := range m.setsOf(line) {
		if _, how, _ := strings.Cut(set, "!"); how == end && m.fits(worker, set) {
			tasks = append(tasks, m.heldIn(set)...)
		}
	}
	return tasks
}

// describe notes which kinds a worker handles.
func (m *model) describe(worker, kinds string) string {
	defer m.done()
	if _, live := m.workers[worker]; !live {
		return "MISSING"
	}
	m.handles[worker] = kinds
	for set := range m.heldSets() {
		if line, _, _ := strings.Cut(set, ","); m.fits(worker, set) {
			m.woken[line] = true
		}
	}
	return "OK"
}

// workerLine describes the record of a worker.
func (m *model) workerLine(worker string) string {
	f := map[string]string{"seq": zeroless(m.fetched[worker]), "lacks": m.lacks[worker], "lacks_at": zeroless(m.lacksAt[worker]),
		"alone": m.alone[worker].String(), "suspects": formatSuspects(m.suspects[worker])}
	if kinds := m.handles[worker]; kinds != "" {
		f["about"], f["kinds"], f["program"], f["state"] = aboutKinds(kinds), kinds, "-", "running"
	}
	return formatFields(f)
}

func aboutKinds(kinds string) string {
	return fmt.Sprintf(`{"kinds":["%s"]}`, strings.Join(strings.Fields(kinds), `","`))
}

func (p *player) describe(t *rapid.T) {
	worker, kinds := drawWorker.Draw(t, "worker"), rapid.SampledFrom([]string{" k ", " d ", " d k "}).Draw(t, "kinds")
	p.play(t, func(t *rapid.T) {
		got := "OK"
		err := claim.Of(p.q).Describe(p.ctx, 0, worker, queue.WorkerRunning, aboutKinds(kinds))
		if errors.Is(err, refusal.ErrNotFound) {
			got = "MISSING"
		} else if err != nil {
			t.Fatal(err)
		}
		p.same(t, "describe "+worker, got, p.m.describe(worker, kinds))
	})
}
