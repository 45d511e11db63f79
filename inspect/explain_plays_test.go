package inspect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Small waits of all kinds run to their ends, with every combination of outcomes that their members can
// have at their last instant. The latest of these ends is the bound that Explain gave at the start, and the
// bound that it gives later is between the end and the first bound. So Explain also misses no bound:
// where it gave none, one of the combinations never ends the wait.
func TestTheBoundIsTheLatestEndOfAllPlays(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Parallel()
	s := &stage{t: t, q: frozen(t, redistest.Shared(t).Client(t)), now: testclock.Start}
	bounds := map[int]inspect.Bound{} // by contest, as Explain gave them at the start
	for i, c := range contests() {
		if !size.Drawn(fmt.Sprintf("%+v", c), 3) {
			continue
		}
		for way := range c.ways() {
			s.begin(&play{contest: i, way: way, spans: c.spans}, c)
		}
		e, err := inspect.Explain(context.Background(), s.q, s.open[len(s.open)-1].agent)
		if err != nil {
			t.Fatal(err)
		}
		bounds[i] = e.Bound
	}
	all := s.open
	s.run()

	latest := map[int]time.Duration{}
	for _, p := range all {
		latest[p.contest] = max(latest[p.contest], p.over)
		if first := after(bounds[p.contest]); p.told > first || p.told > 0 && p.over > p.told {
			t.Errorf("combination %d of %+v was over after %v; Explain said %v at the start and %v later", p.way, contests()[p.contest], p.over, first, p.told)
		}
	}
	for i, c := range contests() {
		if bound, asked := bounds[i]; asked && after(bound) != latest[i] {
			t.Errorf("the latest end of %+v came after %v; Explain gave the bound %+v", c, latest[i], bound)
		}
	}
}

const never = 100 * 365 * 24 * time.Hour

func after(b inspect.Bound) time.Duration {
	if b.Kind == inspect.BoundNone {
		return never
	}
	return b.At.Sub(testclock.Start)
}

// contest is a wait, with the times by which its members have ended. For members 0, 2, … the time is the
// member's timeout, for the others the wait's patience with it; 0 means never.
type contest struct {
	wait  claim.Wait
	spans []time.Duration
}

func contests() []contest {
	const s = time.Second
	var all []contest
	for _, spans := range [][]time.Duration{{0, 0}, {s, 2 * s}, {s, 0}, {0, s, 0}, {2 * s, 0, s}, {s, 2 * s, 4 * s}} {
		for _, w := range []claim.Wait{
			{Mode: queue.WaitAll}, {Mode: queue.WaitFailFast}, {Mode: queue.WaitFailFast, Mask: "onbbb"}, {Mode: queue.WaitAny},
			{Mode: queue.WaitAnyOK}, {Mode: queue.WaitNOfM, Need: 2}, {Mode: queue.WaitNOfM, Need: 2, Mask: "onbbb"}, {Mode: queue.WaitNSettled, Need: 2},
		} {
			for _, limit := range []claim.Wait{{}, {Limit: 2500 * time.Millisecond}, {Limit: 1500 * time.Millisecond, FromFirst: true}, {Computed: true, FromFirst: true}} {
				w.Limit, w.Computed, w.FromFirst = limit.Limit, limit.Computed, limit.FromFirst
				all = append(all, contest{w, spans})
			}
		}
	}
	return all
}

// ways returns the number of combinations of outcomes: each member that has a time completes, fails,
// or is out of time.
func (c contest) ways() int {
	n := 1
	for _, span := range c.spans {
		if span > 0 {
			n *= 3
		}
	}
	return n
}

// play is a contest with one combination of outcomes.
type play struct {
	contest, way int
	spans        []time.Duration
	agent        string
	told         time.Duration // the bound that Explain gave after 1 s; 0 if the wait was over by then
	over         time.Duration // when the wait was over
}

// stage runs all plays at the same time.
type stage struct {
	t    *testing.T
	q    *queue.Queue
	now  time.Time
	seq  int64
	open []*play
}

// begin makes an agent wait as the contest says.
func (s *stage) begin(p *play, c contest) {
	ctx := context.Background()
	p.agent, p.over = queuetest.Enqueue(s.t, s.q, queue.Task{Queue: "agents"}).ID, never
	s.seq++
	trip, err := claim.Of(s.q).Fetch(ctx, 0, "w", claim.Ask{N: 1, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "agents", N: 1}}})
	if err != nil || len(trip.Claims) != 1 {
		s.t.Fatal(trip, err)
	}
	w := claim.Suspension{Agent: p.agent, Epoch: trip.Claims[0].Epoch, Worker: "w", Wait: c.wait}
	w.Wait.Entry, w.Wait.Digest = 1, "d"
	for i, span := range c.spans {
		child := queue.Task{ID: fmt.Sprintf("%s.%d", p.agent, i), Kind: "k", Promise: true}
		m := claim.Member{ID: child.ID}
		if i%2 == 0 {
			child.Timeout = span
		} else {
			m.Patience = span
		}
		w.Children, w.Wait.Members = append(w.Children, child), append(w.Wait.Members, m)
	}
	if _, err := claim.Of(s.q).Suspend(ctx, w); err != nil {
		s.t.Fatal(err)
	}
	s.open = append(s.open, p)
}

// run moves the clock in steps of half a second, since all times are multiples of that. Then it moves
// the clock past 30 minutes, the longest computed limit, and finally by 100 years.
func (s *stage) run() {
	for now := time.Duration(0); now <= 20*time.Second; now += 500 * time.Millisecond {
		s.step(now)
		if now == time.Second {
			s.ask()
		}
	}
	s.step(30*time.Minute + time.Second)
	s.step(never - time.Second)
}

// step acts at one instant, and sweeps one ms later, when tasks that were due at the instant are out of time.
func (s *stage) step(now time.Duration) {
	testclock.Set(s.t, s.q.Client(), s.q.Root(0), testclock.Start.Add(now))
	for _, p := range s.open {
		s.act(p, now)
	}
	testclock.Set(s.t, s.q.Client(), s.q.Root(0), testclock.Start.Add(now+time.Millisecond))
	s.sweep()
	s.close(now)
}

// ask records the bounds that Explain gives for the waits that are not over.
func (s *stage) ask() {
	for _, p := range s.open {
		e, err := inspect.Explain(context.Background(), s.q, p.agent)
		if err != nil {
			s.t.Fatal(err)
		}
		p.told = after(e.Bound)
	}
}

// act settles the members whose last instant this is, except those that are to run out of time.
func (s *stage) act(p *play, now time.Duration) {
	way := p.way
	for i, span := range p.spans {
		if span == 0 {
			continue
		}
		how := way % 3
		way /= 3
		if span != now || how == 0 {
			continue
		}
		id, settle := fmt.Sprintf("%s.%d", p.agent, i), s.q.Resolve
		if how == 2 {
			settle = func(ctx context.Context, id string, _ []byte) (queue.Resolution, error) {
				return s.q.Reject(ctx, id, "no")
			}
		}
		if _, err := settle(context.Background(), id, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) sweep() {
	for {
		swept, err := reaper.Sweep(context.Background(), s.q, 0, "r", 500, time.Hour)
		if err != nil || len(swept.Errors) > 0 {
			s.t.Fatal(err, swept.Errors)
		}
		if swept.Wait > 0 {
			return
		}
	}
}

// close records the plays whose wait is over.
func (s *stage) close(now time.Duration) {
	var ids []string
	for _, p := range s.open {
		ids = append(ids, p.agent)
	}
	records, err := s.q.GetAll(context.Background(), ids)
	if err != nil {
		s.t.Fatal(err)
	}
	var open []*play
	for i, p := range s.open {
		if records[i].Status == queue.Waiting {
			open = append(open, p)
		} else {
			p.over = now
		}
	}
	s.open = open
}
