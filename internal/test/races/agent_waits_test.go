package races

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A wait of many members is registered in parts, and members end between them.
func TestMembersEndWhileTheirWaitIsRegisteredInParts(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	library, err := lua.Load(lua.Options{Functions: true})
	if err != nil {
		t.Fatal(err)
	}
	race(t, 4, func(l *lane) string {
		b := l.bout(queue.Task{}, 6)
		if b == nil {
			return "nothing"
		}
		b.wait.Mode = pick(queue.WaitSettled, queue.WaitFailFast, queue.WaitNOfM, queue.WaitAny, queue.WaitAnyOK, queue.WaitNSettled)
		if b.wait.Mode == queue.WaitNOfM || b.wait.Mode == queue.WaitNSettled {
			b.wait.Need = 4
		}
		b.wait.CancelLosers = rand.IntN(2) == 0
		var answer *queue.WaitOutcome
		sides := []func(){func() { answer = b.suspendInParts(library, 3) }}
		for i := range 3 {
			sides = append(sides, func() { b.end(1+i, 2*i, either()); b.end(1+i, 2*i+1, either()) })
		}
		l.meet(sides...)
		if b.Failed() {
			return "nothing"
		}
		b.resume(answer)
		if answer == nil {
			return "woken"
		}
		return "ready"
	}, "woken", "ready")
}

// suspendInParts is like suspend, but calls the script in parts, as for waits of thousands of members.
func (b *bout) suspendInParts(library *lua.Library, parts int) (answer *queue.WaitOutcome) {
	each := len(b.wait.Members) / parts
	for part := 1; part <= parts; part++ {
		losers := "keep"
		if b.wait.CancelLosers {
			losers = "cancel"
		}
		args := []any{b.agent.ID, b.agent.Epoch, b.worker, queue.NewCall(),
			8, "entry", 1, "mode", string(b.wait.Mode), "need", b.wait.Need, "digest", "digest", "label", "the wait",
			"on_losers", losers, "part", part, "of", parts, each}
		for _, m := range b.wait.Members[(part-1)*each : part*each] {
			args = append(args, m.ID, "", "")
		}
		args = append(args, 0, 0, 0)
		reply, err := library.Run(b.Context(), b.hands[0].Client(), "suspend", b.Q.Root(0), args...)
		if !b.must(err) {
			return nil
		}
		if reply, _, err = engine.ReadReport(0, reply); !b.must(err) {
			return nil
		}
		words := reply.([]any)
		switch word := words[1].(string); {
		case word == "READY":
			o, ok := queue.ReadWaitOutcome(words[2].(string))
			if !ok {
				b.Errorf("part %d of %d: %v", part, parts, words)
			}
			return &o
		case word != "WAITING" && word != "MORE":
			b.Errorf("part %d of %d: %v", part, parts, words)
		}
	}
	return nil
}

// One end satisfies the wait, and there are more losers than one call cancels. Some of them end by
// themselves meanwhile, and do not count.
func TestMembersEndWhileTheLosersAreEnded(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	const busy, idle = 6, 120
	races(t, max(ringRounds()/10, 10), 200, 2, func(l *lane) string {
		b := l.bout(queue.Task{}, busy)
		if b == nil {
			return "nothing"
		}
		b.more(idle)
		// Losers are cancelled in the order of the members: the busy ones come last.
		b.names = slices.Concat(b.names[busy:], b.names[:busy])
		b.wait.Members = slices.Concat(b.wait.Members[busy:], b.wait.Members[:busy])
		b.wait.Mode, b.wait.CancelLosers = queue.WaitAny, true
		if !b.waits() {
			return "nothing"
		}
		ended := make([]bool, busy)
		sides := []func(){func() { b.sweep(3) }}
		for i := range 3 {
			sides = append(sides, func() {
				ended[2*i] = b.end(i, 2*i, queue.Complete)
				ended[2*i+1] = b.end(i, 2*i+1, queue.Complete)
			})
		}
		l.meet(sides...)
		await.Until(l.T, "the wait is over", func() bool { b.sweep(2); return b.state() != queue.Waiting })
		b.resume(nil)
		if !slices.Contains(ended, true) {
			b.Errorf("no end was accepted")
		}
		by := 0
		for _, one := range ended {
			if one {
				by++
			}
		}
		if by > 1 {
			return "some ended by themselves"
		}
		return "the losers were quick"
	}, "some ended by themselves")
}

// Several reapers sweep without waiting for the turn, while the limits of many waits pass at about
// the same time. Some waits have more members than one call ends.
func TestManyReapersOnTheSameWaits(t *testing.T) {
	redistest.NoRace(t, "the calls meet in Redis")
	t.Parallel()
	const crew, crowd, most = 4, 250, 400
	for left := ringRounds(); left > 0; left -= most {
		r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"}), mix: map[string]int{}}
		waits := r.expiring(min(left, most), crowd)
		if t.Failed() {
			return
		}
		var timedOut atomic.Int64
		var sides []func()
		for i := range crew {
			q := r.Another()
			q.Engine().SetTryFor(time.Minute) // a repeat would not count what its first try did
			sides = append(sides, func() {
				for r.zcard("waits") > 0 && !r.Failed() {
					swept, err := reaper.Sweep(r.Context(), q, 0, fmt.Sprint("reaper", i), 100, fallback)
					if err != nil {
						r.Error(err)
					}
					for _, e := range swept.Errors {
						r.Error(e)
					}
					timedOut.Add(int64(swept.WaitsTimedOut))
				}
			})
		}
		r.meet(sides...)
		if n := timedOut.Load(); n != int64(len(waits)) {
			t.Errorf("%d reapers counted %d waits that timed out, want %d", crew, n, len(waits))
		}
		for _, b := range waits {
			b.verdict(nil)
		}
		r.finishAll(waits)
		r.over()
	}
}

// expiring creates n agents that wait for members that do not end: five members, or crowd members
// for one agent in fifty. The limits pass about when the last wait is registered.
func (r *ring) expiring(n, crowd int) (waits []*bout) {
	l := &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}
	for i := range n {
		b := l.bout(queue.Task{}, 0)
		if b == nil {
			return nil
		}
		members := 5
		if i%50 == 7 {
			members = crowd
		}
		b.hire(members, queue.Task{})
		b.wait.Mode, b.wait.Limit, b.wait.KeepPending = queue.WaitAll, time.Hour, i%7 == 0
		waits = append(waits, b)
	}
	limit := time.Now().Add(time.Duration(n) * time.Millisecond)
	for _, b := range waits {
		b.wait.Limit = max(time.Until(limit), time.Millisecond)
		if !b.waits() {
			return nil
		}
	}
	return waits
}

// finishAll fetches the woken agents, each of which must be claimed once, and completes them.
func (r *ring) finishAll(waits []*bout) {
	l := waits[0].lane
	claims := l.take(0, "lane-worker", l.agents(), len(waits)+1, time.Minute)
	if len(claims) != len(waits) {
		r.Errorf("fetch claimed %d agents after their waits, want %d", len(claims), len(waits))
	}
	for _, c := range claims {
		if !l.report(0, "lane-worker", queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}) {
			r.Errorf("the report of %s was refused", c.ID)
		}
	}
}
