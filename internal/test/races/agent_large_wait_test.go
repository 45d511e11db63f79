package races

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// crowded is a wait of many members.
type crowded struct{ *bout }

func newCrowded(t *testing.T, members int) *crowded {
	t.Helper()
	r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{}), mix: map[string]int{}}
	l := &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}
	c := &crowded{l.bout(queue.Task{}, 0)}
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
		for _, held := range claims {
			outcomes = append(outcomes, queue.Outcome{ID: held.ID, Epoch: held.Epoch, Verb: queue.Complete, Result: []byte("1")})
		}
		n -= len(claims)
		trip, err := claim.Of(c.Q).Settle(c.Context(), 0, c.hired(), queue.NewCall(), outcomes, c.ask(c.members(), min(n, list), time.Hour))
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
	if _, err := claim.Of(c.Q).Children(c.Context(), c.agent.ID, c.names); err != nil {
		c.Fatal(err)
	}
	c.bout.Logf("%s: %s, %d of %d settled", c.wait.Mode, o.Reason, len(o.Settled), len(o.Members))
}

// lives are the ways in which a wait of many members can end.
var lives = []struct {
	name string
	live func(c *crowded, members int)
}{
	{"all members end", func(c *crowded, n int) {
		c.wait.Mode = queue.WaitAll
		c.waits()
		c.endSome(n, 500)
		c.goOn()
	}},
	{"all members ended before the wait", func(c *crowded, n int) {
		c.wait.Mode = queue.WaitSettled
		c.endSome(n, 500)
		answer, err := c.suspend(0)
		if err != nil || answer == nil {
			c.Fatalf("suspend = %v, %v, want an answer", answer, err)
		}
		c.resume(answer)
	}},
	{"the limit passes", func(c *crowded, n int) {
		c.wait.Mode, c.wait.Limit = queue.WaitAll, 300*time.Millisecond
		c.endSome(n/10, 500)
		c.waits()
		c.endSome(n/10, 500)
		c.drain("waits")
		c.goOn()
	}},
	{"one is enough", func(c *crowded, n int) {
		c.wait.Mode, c.wait.CancelLosers = queue.WaitAny, true
		c.waits()
		c.endSome(1, 1)
		c.drain("waits")
		c.goOn()
	}},
	{"the agent is cancelled", func(c *crowded, n int) {
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

// A wait of many members takes several calls at each end.
func TestALargeWaitEnds(t *testing.T) {
	redistest.NoRace(t, "it has one goroutine")
	t.Parallel()
	for _, life := range lives {
		t.Run(life.name, func(t *testing.T) {
			members := harness.Times(1200, 1200, 10_000)
			c := newCrowded(t, members)
			life.live(c, members)
			c.sweepOut()
			c.account(c.ids)
		})
	}
}

// Many waits fire at once.
func TestManyWaitsFireAtOnce(t *testing.T) {
	redistest.NoRace(t, "it has one goroutine")
	t.Parallel()
	agents, members := harness.Times(30, 30, 100), harness.Times(30, 30, 100)
	for _, c := range []struct {
		name string
		wait claim.Wait
	}{
		{"at their limits", claim.Wait{Mode: queue.WaitAll, Limit: 500 * time.Millisecond}},
		{"by one list of ends", claim.Wait{Mode: queue.WaitAny, CancelLosers: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFiring(t, agents, members, c.wait)
			f.fire()
			f.woken()
		})
	}
}

// firing is many waits that fire together.
type firing struct {
	*lane
	waits  []*bout
	firsts []queue.Claim // a running member of each wait that one member ends
}

func newFiring(t *testing.T, agents, members int, wait claim.Wait) *firing {
	r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{}), mix: map[string]int{}}
	f := &firing{lane: &lane{ring: r, name: "lane", hands: []*queue.Queue{r.Q, r.Q, r.Q, r.Q}}}
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
		if _, err := claim.Of(f.Q).Settle(f.Context(), 0, f.hired(), queue.NewCall(), outcomes, claim.Ask{}); err != nil {
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
