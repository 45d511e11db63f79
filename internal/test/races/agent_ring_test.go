package races

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// ring is a namespace in which one race between the calls of agents runs many times, on several lanes at
// the same time. Each round checks what must be true whichever call is first. The end of the test checks
// the whole namespace.
type ring struct {
	*stage
	mu  sync.Mutex
	ids []string
	mix map[string]int // how often each side won
	// spread is the longest delay before a side begins.
	spread time.Duration
}

// lane runs one round after the other. Each of its hands has its own connections, so that racing calls
// never wait for each other in one client.
type lane struct {
	*ring
	name  string
	hands []*queue.Queue
	seq   int64         // of the last fetch
	time  time.Duration // the timeout of an agent with a short deadline
}

const (
	hands  = 4
	spread = 400 * time.Microsecond // the longest delay before a side begins, in the first rounds
)

// ringRounds returns how often to run a race.
func ringRounds() int { return harness.Times(50, 100, 10_000) }

// race runs rounds on several lanes, and counts how often each side won. Every side in wins must win at
// least once.
func race(t *testing.T, lanes int, round func(l *lane) (won string), wins ...string) {
	t.Helper()
	races(t, ringRounds(), 1000, lanes, round, wins...)
}

// races is like race with a number of rounds, at most most of them in one namespace: its event stream
// keeps only about 100,000 events.
func races(t *testing.T, rounds, most, lanes int, round func(l *lane) (won string), wins ...string) {
	t.Helper()
	mix := map[string]int{}
	// On a busy machine one side can win all rounds. Then more rounds run, with longer random delays.
	for spread := spread; ; spread *= 4 {
		for left := rounds; left > 0; left -= most {
			r := &ring{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{Events: "all"}), mix: mix, spread: spread}
			r.play(lanes, min(left, most), round)
			r.over()
		}
		t.Logf("%d rounds: %v", rounds, mix)
		missing := slices.IndexFunc(wins, func(side string) bool { return mix[side] == 0 })
		if missing < 0 || t.Failed() {
			return
		}
		if spread > 20*time.Millisecond {
			t.Errorf("the result was never %q, so this test shows nothing", wins[missing])
			return
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
	for i := range lanes { // all connect before the first round
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

// over ends all tasks, and checks the whole namespace.
func (r *ring) over() {
	r.Helper()
	if r.Failed() {
		return
	}
	r.sweepOut()
	r.account(r.ids)
	r.checkLives()
}

// sweepOut sweeps until the clocks draining, waits, deadlines and limits are empty.
func (s *stage) sweepOut() {
	s.Helper()
	left := func() int64 {
		return s.zcard("draining") + s.zcard("waits") + s.zcard("deadlines") + s.zcard("limits")
	}
	for start := time.Now(); left() > 0; {
		if _, err := reaper.Sweep(s.Context(), s.Q, 0, "last", 100, fallback); err != nil {
			s.Fatal(err)
		}
		// real time: only a sweep that never ends all takes so long
		if time.Since(start) > 2*time.Minute {
			s.Fatalf("%d tasks are still on the clocks", left())
		}
	}
}

// meet runs all sides at the same time, each after a random delay of up to the spread, so that any of them
// can be first. It returns when all have returned.
func (r *ring) meet(sides ...func()) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for _, i := range rand.Perm(len(sides)) {
		side := sides[i]
		head := rand.N(max(r.spread, spread))
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

// slower returns a duration of the first rounds, multiplied like the spread of these.
func (r *ring) slower(d time.Duration) time.Duration { return d * (r.spread / spread) }

// near waits until a random instant, from before an instant until after it.
func near(instant time.Time, before, after time.Duration) {
	until(instant.Add(-before + rand.N(before+after)))
}

// must fails the test if a call failed that cannot fail, and returns whether it succeeded.
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

// known adds ids to those that account checks.
func (r *ring) known(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, ids...)
}

// take fetches tasks of a queue for a worker.
func (l *lane) take(hand int, worker, line string, n int, lease time.Duration) []queue.Claim {
	trip, err := claim.Of(l.hands[hand]).Fetch(l.Context(), 0, worker, l.ask(line, n, lease))
	if err != nil {
		l.Error(err)
		return nil
	}
	for _, e := range trip.Errors {
		l.Error(e)
	}
	return trip.Claims
}

// ask returns an Ask for n tasks of a queue, with the next seq.
func (l *lane) ask(line string, n int, lease time.Duration) claim.Ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return claim.Ask{N: n, Seq: l.seq, Lease: lease, Quotas: []claim.Quota{{Queue: line, N: n}}}
}

func (l *lane) agents() string  { return l.name + "-agents" }
func (l *lane) members() string { return l.name + "-members" }
