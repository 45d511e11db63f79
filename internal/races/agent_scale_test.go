package races

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

// crowded is a wait of many members on its own server, with a meter of its scripts.
type crowded struct {
	*bout
	*meter
}

func newCrowded(t *testing.T, server *redistest.Server, members int) *crowded {
	t.Helper()
	r := &ring{stage: newStage(t, server.Addr, queue.Config{}), mix: map[string]int{}}
	m := newMeter(t, server.Addr)
	r.Redis.AddHook(m)
	l := &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}
	c := &crowded{l.bout(queue.Task{}, 0), m}
	if c.bout == nil {
		t.FailNow()
	}
	c.more(members)
	return c
}

// endSome completes n members as a worker with list slots does: each settle fetches the next ones.
func (c *crowded) endSome(n, list int) {
	claims := c.take(0, c.hired(), c.members(), min(n, list), time.Hour)
	for n > 0 {
		if len(claims) == 0 {
			c.Fatal("no member is left to complete")
		}
		var outcomes []queue.Outcome
		for _, claim := range claims {
			outcomes = append(outcomes, queue.Outcome{ID: claim.ID, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte("1")})
		}
		n -= len(claims)
		trip, err := c.Q.Attempts().Settle(c.Context(), 0, c.hired(), queue.NewCall(), outcomes, c.ask(c.members(), min(n, list), time.Hour))
		if err != nil || len(trip.Errors) > 0 {
			c.Fatal(err, trip.Errors)
		}
		claims = trip.Claims
		if len(claims) < min(n, list) {
			claims = append(claims, c.take(0, c.hired(), c.members(), min(n, list)-len(claims), time.Hour)...)
		}
	}
}

// goOn continues the woken agent: it reads its journal and all of its children, and completes.
func (c *crowded) goOn() {
	o := c.resume(nil)
	if _, err := c.Q.Attempts().Children(c.Context(), c.agent.ID, c.names); err != nil {
		c.Fatal(err)
	}
	c.bout.Logf("%s: %s, %d of %d settled", c.wait.Mode, o.Reason, len(o.Settled), len(o.Members))
}

// lives are the ways in which a wait of many members can end. members is the number of members without
// CURFEW_LONG.
var lives = []struct {
	name    string
	members int
	live    func(c *crowded, members int)
}{
	{"all members end", 3000, func(c *crowded, n int) {
		c.wait.Mode = queue.WaitAll
		c.waits()
		c.endSome(n, 500)
		c.goOn()
	}},
	{"all members ended before the wait", 10_000, func(c *crowded, n int) {
		c.wait.Mode = queue.WaitSettled
		c.endSome(n, 500)
		answer, err := c.suspend(0)
		if err != nil || answer == nil {
			c.Fatalf("suspend = %v, %v, want an answer", answer, err)
		}
		c.resume(answer)
	}},
	{"the limit passes", 10_000, func(c *crowded, n int) {
		c.wait.Mode, c.wait.Limit = queue.WaitAll, 300*time.Millisecond
		c.endSome(n/10, 500)
		c.waits()
		c.endSome(n/10, 500)
		c.drain("waits")
		c.goOn()
	}},
	{"one is enough", 3000, func(c *crowded, n int) {
		c.wait.Mode, c.wait.CancelLosers = queue.WaitAny, true
		c.waits()
		c.endSome(1, 1)
		c.drain("waits")
		c.goOn()
	}},
	{"the agent is cancelled", 3000, func(c *crowded, n int) {
		c.wait.Mode = queue.WaitAll
		c.waits()
		c.endSome(n/10, 500)
		if _, err := c.Q.Cancel(c.Context(), c.agent.ID, ""); err != nil {
			c.Fatal(err)
		}
		c.drain("draining")
	}},
}

// drain sweeps until a clock is empty.
func (c *crowded) drain(clock string) {
	start, sweeps := time.Now(), 0
	await.Until(c.T, "the clock "+clock+" is empty", func() bool { c.sweep(0); sweeps++; return c.zcard(clock) == 0 })
	c.bout.Logf("%s drained by %d sweeps in %v", clock, sweeps, time.Since(start))
}

// longest is the largest CPU time of a script, for any number of members.
const longest = 20 * time.Millisecond

func TestNoScriptOfALargeWaitIsLong(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	for _, life := range lives {
		members := life.members
		if stages.Long() {
			members = 10_000
		} else if testing.Short() {
			members = 2000
		}
		t.Run(life.name, func(t *testing.T) {
			// The best of several runs counts, because other programs make them slower.
			best := map[string]time.Duration{}
			for try := range 6 {
				server := redistest.Start(t)
				pace := redistest.Pace(t, server.Client(t))
				c := newCrowded(t, server, members)
				life.live(c, members)
				most := c.meter.Empty()
				for _, name := range c.library.Names() {
					took := time.Duration(float64(most[name]) / pace)
					if d, ok := best[name]; try == 0 || ok && took < d {
						best[name] = took
					}
				}
				c.sweepOut()
				c.account(c.ids)
				if slices.Max(slices.Collect(maps.Values(best))) <= longest || t.Failed() {
					break
				}
				t.Logf("run %d, at %.1f times the usual pace: %v", try, pace, most)
			}
			for name, d := range best {
				if d > longest {
					t.Errorf("a run of %s took %v at the usual pace, want at most %v", name, d, longest)
				}
			}
			maps.DeleteFunc(best, func(_ string, d time.Duration) bool { return d == 0 })
			t.Logf("%d members: %v", members, best)
		})
	}
}

// The time of a script must also be bounded when many waits fire at once.
func TestNoScriptIsLongWhenManyWaitsFireAtOnce(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	const agents, members = 100, 100
	for _, c := range []struct {
		name string
		wait queue.Wait
	}{
		{"at their limits", queue.Wait{Mode: queue.WaitAll, Limit: 500 * time.Millisecond}},
		{"by one list of ends", queue.Wait{Mode: queue.WaitAny, CancelLosers: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			best := map[string]time.Duration{}
			for try := range 4 {
				f := newFiring(t, agents, members, c.wait)
				f.fire()
				most := f.meter.Empty()
				for _, name := range []string{"sweep", "settle"} {
					if d, ok := best[name]; !ok || most[name] < d {
						best[name] = most[name]
					}
				}
				f.woken()
				if max(best["sweep"], best["settle"]) <= longest || t.Failed() {
					break
				}
				t.Logf("run %d: %v", try, most)
			}
			t.Logf("%d waits of %d members: %v", agents, members, best)
			for name, d := range best {
				if d > longest {
					t.Errorf("a run of %s took %v, want at most %v", name, d, longest)
				}
			}
		})
	}
}

// firing is many waits that fire together.
type firing struct {
	*lane
	*meter
	waits  []*bout
	firsts []queue.Claim // a running member of each wait that one member ends
}

func newFiring(t *testing.T, agents, members int, wait queue.Wait) *firing {
	r := &ring{stage: newStage(t, redistest.Start(t).Addr, queue.Config{}), mix: map[string]int{}}
	f := &firing{meter: newMeter(t, r.Addr), lane: &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}}
	for range agents {
		b := f.bout(queue.Task{}, 0)
		if b == nil {
			t.FailNow()
		}
		if wait.CancelLosers {
			b.hire(1, queue.Task{})
			f.firsts = append(f.firsts, b.claims...)
		}
		f.waits = append(f.waits, b)
	}
	for _, b := range f.waits {
		b.more(members - len(b.names))
	}
	end := time.Now().Add(wait.Limit)
	for _, b := range f.waits {
		members := b.wait.Members
		b.wait = wait
		b.wait.Members = members
		if wait.Limit > 0 {
			b.wait.Limit = max(time.Until(end), time.Millisecond)
		}
		if !b.waits() {
			t.FailNow()
		}
	}
	f.report(0, "nobody", queue.Outcome{ID: "0-nobody", Epoch: 1, Verb: queue.Release}) // so that the script is compiled
	f.sweep(0)
	r.Redis.AddHook(f.meter)
	return f
}

func (f *firing) fire() {
	if len(f.firsts) == 0 {
		until(time.Now().Add(f.waits[0].wait.Limit)) // until all are due
	}
	var outcomes []queue.Outcome
	for _, c := range f.firsts {
		outcomes = append(outcomes, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete})
	}
	if len(outcomes) > 0 {
		if _, err := f.Q.Attempts().Settle(f.Context(), 0, f.hired(), queue.NewCall(), outcomes, queue.Ask{}); err != nil {
			f.lane.Fatal(err)
		}
	}
	await.Until(f.lane.T, "no wait is left", func() bool { f.sweep(0); return f.zcard("waits") == 0 })
}

// woken checks that all agents can run again, and completes them.
func (f *firing) woken() {
	for _, b := range f.waits {
		b.verdict(nil)
	}
	f.finishAll(f.waits)
	f.sweepOut()
	f.account(f.ids)
}
