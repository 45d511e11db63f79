package races

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// choir is several reapers in this process.
type choir struct {
	*stage
	mu    sync.Mutex
	stops []func()
	turns map[int]int   // sweeps with the turn, by reaper
	taken chan struct{} // receives a value after a sweep with the turn
}

func (s *stage) choir(n int) *choir {
	c := &choir{stage: s, turns: map[int]int{}, taken: make(chan struct{}, 1)}
	for i := range n {
		c.stops = append(c.stops, s.Reap(reaper.Config{Observe: func(_ int, swept reaper.Swept) {
			if !swept.Turn {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.turns[i]++
			select {
			case c.taken <- struct{}{}:
			default:
			}
		}}))
	}
	return c
}

// holders returns the reapers that swept with the turn since the last call of holders.
func (c *choir) holders() map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	turns := c.turns
	c.turns = map[int]int{}
	select {
	case <-c.taken:
	default:
	}
	return turns
}

// sweeps returns how many scripts the server has run.
func (s *stage) sweeps() (n int64) {
	for line := range strings.Lines(s.Redis.Info(s.Context(), "commandstats").Val()) {
		for _, name := range []string{"cmdstat_fcall:calls=", "cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				digits, _, _ := strings.Cut(rest, ",")
				calls, _ := strconv.ParseInt(digits, 10, 64)
				n += calls
			}
		}
	}
	return n
}

func TestTurn(t *testing.T) {
	// The turn lasts two fall-backs from its holder's last sweep. Then the next poll of any other
	// reaper takes it, at most a fall-back later.
	const takeOver = 1500 * time.Millisecond
	s := newStage(t, redistest.Start(t).Addr, queue.Config{})

	first := s.Spawn("reaper")
	for await.Receive(t, first.Lines, "the first reaper has the turn") != "turn" {
	}
	before := s.sweeps()
	until(time.Now().Add(time.Second))
	alone := s.sweeps() - before

	c := s.choir(8)
	until(time.Now().Add(600 * time.Millisecond)) // each has polled
	if holders := c.holders(); len(holders) > 0 {
		t.Errorf("reapers %v took the turn of a live reaper", holders)
	}
	first.Kill()
	killed := time.Now()
	c.holders()
	await.Receive(t, c.taken, "another reaper takes the turn of the killed one")
	took := time.Since(killed)
	t.Logf("another reaper took the turn of the killed one after %v", took)
	if took > takeOver+await.Stall {
		t.Errorf("another reaper took the turn of the killed one after %v, want at most %v", took, takeOver)
	}

	// Idle: one reaper has the turn all the time, and the others only poll.
	c.holders()
	before = s.sweeps()
	until(time.Now().Add(2 * time.Second))
	eight := s.sweeps() - before
	holders := c.holders()
	if len(holders) != 1 {
		t.Errorf("in two idle seconds the turn was with the reapers %v (reaper: sweeps), want one reaper", holders)
	}
	t.Logf("idle, 1 reaper: %d sweeps in 1s; 8 reapers: %d in 2s", alone, eight)
	// All reapers without the turn together poll four times in a fall-back. Jitter shortens the time
	// between two polls by at most a quarter.
	const looks = 4 * 2000 / 375
	if most := int64(2000/500 + looks + 9); eight > most || alone > 2000/500 {
		t.Errorf("an idle reaper makes %d sweeps in 1s and 8 make %d in 2s, want at most 4 and %d: those of one reaper, and the polls of the others", alone, eight, most)
	}

	// Busy: alarms wake only the reaper with the turn.
	before = s.sweeps()
	var ids []string
	start := time.Now()
	for time.Since(start) < time.Second {
		ids = append(ids, s.Enqueue(queue.Task{Kind: "k", Timeout: 5 * time.Millisecond})...)
		until(time.Now().Add(10 * time.Millisecond))
	}
	await.Until(t, "all tasks have ended", func() bool { return s.zcard("deadlines") == 0 })
	busy := s.sweeps() - before - int64(len(ids))
	t.Logf("busy, 8 reapers: %d sweeps for %d tasks one by one in 1s", busy, len(ids))
	// Two for each task: the sweep at the alarm, and the one at the deadline.
	if most := int64(2*len(ids)) + looks/2 + 20; busy > most {
		t.Errorf("8 reapers make %d sweeps for %d tasks, want at most %d: an alarm must wake only one of them", busy, len(ids), most)
	}

	// A reaper that ends does not notify the others. Tasks that fall due before another one has the
	// turn do not wait for it.
	for holder := range holders {
		late := s.Enqueue(queue.Task{Kind: "k", Timeout: 300 * time.Millisecond})
		ids = append(ids, late...)
		c.stops[holder]()
		ended := time.Now()
		c.holders()
		await.Receive(t, c.taken, "another reaper takes the turn of the one that ended")
		took := time.Since(ended)
		t.Logf("another reaper took the turn of the one that ended after %v", took)
		if took > takeOver+await.Stall {
			t.Errorf("another reaper took the turn of the one that ended after %v, want at most %v", took, takeOver)
		}
		await.Until(t, "the task that fell due meanwhile has ended", func() bool { return s.zcard("deadlines") == 0 })
		r := s.Record(late[0])
		if lag := r.DetectedAt.Sub(r.CompletedAt); lag > 500*time.Millisecond+await.Stall {
			t.Errorf("while no reaper had the turn, a timeout was detected %v late, want at most the fall-back", lag)
		}
	}
	s.account(ids)
}
