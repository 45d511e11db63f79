package races

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
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

// rate returns how many scripts a second the server runs.
func (s *stage) rate(span time.Duration) float64 {
	before, start := s.sweeps(), time.Now()
	until(start.Add(span))
	return float64(s.sweeps()-before) / time.Since(start).Seconds()
}

func TestTurn(t *testing.T) {
	s := newStage(t, redistest.Start(t).Addr, queue.Config{})

	first := s.Spawn("reaper")
	for await.Receive(t, first.Lines, "the first reaper has the turn") != "turn" {
	}
	alone := s.rate(time.Second)

	c := s.choir(8)
	until(time.Now().Add(600 * time.Millisecond)) // each has polled
	if holders := c.holders(); len(holders) > 0 {
		t.Errorf("reapers %v took the turn of a live reaper", holders)
	}
	first.Kill()
	c.holders()
	await.Receive(t, c.taken, "another reaper takes the turn of the killed one")

	// Idle: one reaper has the turn all the time, and the others only poll.
	var eight float64
	var holders map[int]int
	await.Until(t, "one reaper has the turn for two idle seconds", func() bool { // a reaper that gets no processor for long loses it
		c.holders()
		eight = s.rate(2 * time.Second)
		holders = c.holders()
		return len(holders) == 1
	})
	t.Logf("idle, sweeps a second: %.1f of 1 reaper; %.1f of 8", alone, eight)
	// All reapers without the turn together poll four times in a fall-back. Jitter shortens the time
	// between two polls by at most a quarter.
	const looks = 4 * 1000 / 375.
	if most := 1000./500 + looks + 4.5; eight > most || alone > 4 {
		t.Errorf("an idle reaper makes %.1f sweeps a second and 8 make %.1f, want at most 4 and %.1f: those of one reaper, and the polls of the others", alone, eight, most)
	}

	// Busy: alarms wake only the reaper with the turn.
	before := s.sweeps()
	var ids []string
	start := time.Now()
	for len(ids) < 60 {
		ids = append(ids, s.Enqueue(queue.Task{Kind: "k", Timeout: 5 * time.Millisecond})...)
		until(time.Now().Add(10 * time.Millisecond))
	}
	await.Until(t, "all tasks have ended", func() bool { return s.zcard("deadlines") == 0 })
	busy, took := s.sweeps()-before-int64(len(ids)), time.Since(start)
	t.Logf("busy, 8 reapers: %d sweeps for %d tasks one by one in %v", busy, len(ids), took)
	// Two for each task: the sweep at the alarm, and the one at the deadline.
	if most := int64(2*len(ids)) + int64(looks*took.Seconds()) + 20; busy > most {
		t.Errorf("8 reapers make %d sweeps for %d tasks, want at most %d: an alarm must wake only one of them", busy, len(ids), most)
	}

	// A reaper that ends does not notify the others. Tasks that fall due before another one has the
	// turn do not wait for it.
	for holder := range holders {
		late := s.Enqueue(queue.Task{Kind: "k", Timeout: 300 * time.Millisecond})
		ids = append(ids, late...)
		c.stops[holder]()
		c.holders()
		await.Receive(t, c.taken, "another reaper takes the turn of the one that ended")
		await.Until(t, "the task that fell due meanwhile has ended", func() bool { return s.zcard("deadlines") == 0 })
	}
	s.account(ids)
}
