package inspect

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// Each member of a small wait ends at its bound, in every combination of outcomes, unless the wait is
// out of time before that. The bound of the wait must be the latest of these instants: an earlier one
// would be wrong, and a later one is not needed. There is no bound only if some combination never
// decides the wait.
func TestTheBoundOfAWaitIsTheWorstOfAllEnds(t *testing.T) {
	masks := []string{"obbbb", "obbbb", "obbbb", "ooooo", "bbbbb", "nnnnn", "obnbb", "onnnn", "oonnn", "bnnnn"}
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		o := &observed{id: "0-a", now: 100, wait: map[string]string{}}
		n := 1 + r.IntN(5)
		settled := r.IntN(n)
		ok := r.IntN(settled + 1)
		bad := r.IntN(settled - ok + 1)
		need := 1 + r.IntN(n)
		w := worst{ok: ok, bad: bad, settled: settled, all: n}
		switch r.IntN(4) {
		case 0: // all, settled
		case 1: // any, n_settled
			w.all = need
		case 2: // fail_fast
			w.most = 1
		case 3: // any_ok, n_of_m
			w.need, w.most = need, n-need+1
		}
		if w.fired() {
			continue
		}
		for name, value := range map[string]int{"ok": w.ok, "bad": w.bad, "settled": w.settled, "all": w.all, "need_ok": w.need, "most_bad": w.most} {
			if value > 0 {
				o.wait[name] = strconv.Itoa(value)
			}
		}
		switch r.IntN(4) {
		case 0: // its limit runs
			w.limit = int64(100 + r.IntN(12))
			o.wait["wait_deadline_at"] = strconv.FormatInt(w.limit, 10)
		case 1, 2: // its limit begins when the first member ends
			if settled == 0 {
				w.span = int64(1 + r.IntN(6))
				o.wait["limit_ms"] = strconv.FormatInt(w.span, 10)
			}
		}
		for i := range n - settled {
			f := map[string]string{"status": "PENDING", "role": "promise"}
			if r.IntN(6) > 0 {
				f["deadline_at"] = strconv.Itoa(101 + r.IntN(8))
			}
			o.members = append(o.members, member{id: "0-a." + strconv.Itoa(i), mask: masks[r.IntN(len(masks))], fields: f})
		}
		want := w.latest(o.members)
		all := o.patients()
		got := sooner(o.membersBound(all), o.limitBound(all))
		if got.At != utc(want) || (got.Kind == BoundNone) != (want == 0) {
			t.Fatalf("seed %d: wait %v, members %+v: bound %+v, want %d", seed, o.wait, o.members, got, want)
		}
	}
}

// worst is a wait with the counters that lua/wait/wait.lua keeps.
type worst struct {
	ok, bad, settled, need, most, all int
	limit, span                       int64 // the instant of its limit, or the limit in ms after the first end
}

func (w worst) fired() bool {
	return w.need > 0 && w.ok >= w.need || w.most > 0 && w.bad >= w.most || w.settled >= w.all
}

// latest returns the latest instant at which the wait can fire, 0 if it may never fire.
func (w worst) latest(members []member) int64 {
	due := slices.Clone(members)
	slices.SortStableFunc(due, func(a, b member) int {
		x, y := ms(a.fields, "deadline_at"), ms(b.fields, "deadline_at")
		switch {
		case x == y:
			return 0
		case y == 0 || x != 0 && x < y:
			return -1
		}
		return 1
	})
	if len(due) == 0 || ms(due[0].fields, "deadline_at") == 0 {
		return w.limit
	}
	at, latest := ms(due[0].fields, "deadline_at"), int64(0)
	if w.limit > 0 && w.limit < at {
		return w.limit
	}
	if w.limit == 0 && w.span > 0 {
		w.limit = at + w.span
	}
	for _, letter := range due[0].mask {
		next := w
		next.settled++
		switch letter {
		case 'o':
			next.ok++
		case 'b':
			next.bad++
		}
		end := at
		if !next.fired() {
			end = next.latest(due[1:])
		}
		if end == 0 {
			return 0
		}
		latest = max(latest, end)
	}
	return latest
}

// Members that ended while the pages were read count as ended when the last page was read. Their
// outcomes are unknown, so they count only as ends, not as ok or bad.
func TestMembersThatEndBetweenPagesAreCounted(t *testing.T) {
	pending := func(id string, at int) member {
		return member{id: id, mask: "obbbb", fields: map[string]string{"status": "PENDING", "deadline_at": strconv.Itoa(at)}}
	}
	for _, row := range []struct {
		claim string
		wait  map[string]string
		want  Bound
	}{
		{"a wait for all: the member that is left decides", map[string]string{"all": "3"}, Bound{BoundDeadline, utc(500), duration.Duration(400 * time.Millisecond), "0-a.1"}},
		{"a wait for two ends: the two that ended decide", map[string]string{"all": "2"}, Bound{BoundDecided, utc(110), duration.Duration(10 * time.Millisecond), "0-a"}},
		{"a wait for one that completes: the outcomes are unknown, so the member that is left decides", map[string]string{"all": "3", "need_ok": "1", "most_bad": "3"}, Bound{BoundDeadline, utc(500), duration.Duration(400 * time.Millisecond), "0-a.1"}},
	} {
		o := &observed{id: "0-a", now: 100, wait: row.wait, members: []member{pending("0-a.1", 500)}, gone: 2, goneBy: 110}
		if got := o.membersBound(o.patients()); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.claim, got, row.want)
		}
	}
}
