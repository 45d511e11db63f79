package races

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// ring is a namespace in which one race between the calls of agents is run again and
// again, on several lanes beside each other. What must be true whoever wins is checked
// after each round, and of the whole namespace at the end.
type ring struct {
	*stage
	mu  sync.Mutex
	ids []string
	mix map[string]int // how often which side won
}

// lane is where one round follows the other. Each of its hands has connections of its
// own: those who race never stand in one line.
type lane struct {
	*ring
	name  string
	hands []*queue.Queue
	seq   int64         // of its fetches
	time  time.Duration // that an agent is given, where it is given little
}

const hands = 4

// ringRounds is how often a race is run: a few hundred times, or 10,000.
func ringRounds() int {
	switch {
	case stages.Long():
		return 10_000
	case testing.Short():
		return 50
	}
	return 300
}

// race runs rounds, and counts how often each side won; every side in wins must have, or
// it was no race.
func race(t *testing.T, lanes int, round func(l *lane) (won string), wins ...string) {
	t.Helper()
	races(t, ringRounds(), 1000, lanes, round, wins...)
}

// races is race with so many rounds, and so many of them at the most in one namespace: its
// stream of events keeps no more than about the newest 100,000.
func races(t *testing.T, rounds, most, lanes int, round func(l *lane) (won string), wins ...string) {
	t.Helper()
	mix := map[string]int{}
	for left := rounds; left > 0; left -= most {
		r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"}), mix: mix}
		r.play(lanes, min(left, most), round)
		r.over()
	}
	t.Logf("%d rounds: %v", rounds, mix)
	for _, side := range wins {
		if mix[side] == 0 {
			t.Errorf("in %d rounds it was never %q: this was no race", rounds, side)
		}
	}
}

func (r *ring) play(lanes, rounds int, round func(l *lane) string) {
	turns := make(chan struct{}, rounds)
	for range rounds {
		turns <- struct{}{}
	}
	close(turns)
	var all []*lane
	for i := range lanes { // all are there before the first begins
		l := &lane{ring: r, name: fmt.Sprint("lane", i)}
		for range hands {
			l.hands = append(l.hands, r.Another())
		}
		all = append(all, l)
	}
	var group sync.WaitGroup
	for _, l := range all {
		group.Go(func() {
			for range turns {
				if r.Failed() {
					return
				}
				won := round(l)
				r.mu.Lock()
				r.mix[won]++
				r.mu.Unlock()
			}
		})
	}
	group.Wait()
}

// over ends what is left, and takes account of everything.
func (r *ring) over() {
	r.Helper()
	if r.Failed() {
		return
	}
	r.sweepOut()
	r.account(r.ids)
	r.checkLives()
}

// sweepOut sweeps until nothing is due any more, and nothing that has ended has children
// left to end.
func (s *stage) sweepOut() {
	s.Helper()
	left := func() int64 {
		return s.zcard("draining") + s.zcard("waits") + s.zcard("deadlines") + s.zcard("limits")
	}
	for start := time.Now(); left() > 0; {
		if _, err := reaper.Sweep(s.Context(), s.Q, 0, "last", 100, fallback); err != nil {
			s.Fatal(err)
		}
		if time.Since(start) > 2*time.Minute {
			s.Fatalf("%d are left on the clocks", left())
		}
	}
}

// meet has everybody begin at once. Who is first is up to the machine, and to a little
// chance: not every call takes the same time to be made.
func meet(sides ...func()) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for _, i := range rand.Perm(len(sides)) {
		side := sides[i]
		head := time.Duration(rand.IntN(400)) * time.Microsecond
		group.Go(func() {
			<-begin
			for start := time.Now(); time.Since(start) < head; {
			}
			side()
		})
	}
	close(begin)
	group.Wait()
}

// near waits for a moment at about an instant, from `before` it to `after` it.
func near(instant time.Time, before, after time.Duration) {
	until(instant.Add(-before + rand.N(before+after)))
}

// must is for what the rules of a race leave no choice in.
func (l *lane) must(err error) bool {
	if err != nil && l.Context().Err() == nil {
		l.Error(err)
	}
	return err == nil
}

func (l *lane) enlist(tasks []queue.Task) []string {
	receipts, err := l.hands[0].EnqueueAll(l.Context(), tasks)
	if err != nil {
		l.Error(err)
		return nil
	}
	ids := make([]string, len(receipts))
	for i, r := range receipts {
		if r.Err != nil {
			l.Error(r.Err)
			return nil
		}
		ids[i] = r.ID
	}
	l.known(ids...)
	return ids
}

// known keeps ids for the account.
func (r *ring) known(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, ids...)
}

// take has a worker of the lane take what stands in one of its lines.
func (l *lane) take(hand int, worker, line string, n int, lease time.Duration) []queue.Claim {
	trip, err := l.hands[hand].Attempts().Fetch(l.Context(), 0, worker, l.ask(line, n, lease))
	if err != nil {
		l.Error(err)
		return nil
	}
	for _, e := range trip.Errors {
		l.Error(e)
	}
	return trip.Claims
}

// ask is for n tasks of a line.
func (l *lane) ask(line string, n int, lease time.Duration) queue.Ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return queue.Ask{N: n, Seq: l.seq, Lease: lease, Quotas: []queue.Quota{{Queue: line, N: n}}}
}

func (l *lane) agents() string  { return l.name + "-agents" }
func (l *lane) members() string { return l.name + "-members" }
