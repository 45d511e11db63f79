package curfewtest

import (
	"math"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/reaper"
)

// sweeper is the name that the stage sweeps under: it always has the turn.
const sweeper = "curfewtest"

// last is where the embedded server's clock ends.
var last = time.Unix(0, math.MaxInt64)

// Now is the instant that the clock stands at.
func (s *Stage) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Advance moves the clock by d. What falls due on the way ends, starts or goes at its
// own instant: a task that is delayed by 5 s and may stand in line for 10 s has ended
// after Advance(time.Minute). No handler is run. Advance(0) does what is due now. Parts
// of a millisecond are rounded up.
//
// A handler may call it. If its attempt is over then, its context has ended when
// Advance returns.
func (s *Stage) Advance(d time.Duration) {
	s.tb.Helper()
	if d < 0 {
		s.tb.Fatalf("Advance(%v): the clock does not go back", d)
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	for end := s.Now().Add((d + time.Millisecond - 1).Truncate(time.Millisecond)); ; {
		left := end.Sub(s.Now())
		wait := s.sweep(left)
		if left <= 0 {
			s.stopOverdue(s.Now()) // what the sweeps took away
			return
		}
		s.move(min(wait, left))
	}
}

// move sets the clock forward, and ends the contexts of attempts that are over by it.
func (s *Stage) move(d time.Duration) {
	s.tb.Helper()
	d = max(d, time.Millisecond) // the finest that Redis keeps
	at := s.Now().Add(d)
	if at.After(last) {
		s.tb.Fatalf("The clock cannot go to %v: the year 2262 is its last.", at.UTC())
	}
	// Before the clock of Redis says so: the news of that comes to a handler in its own
	// time, and with less to say.
	s.stopOverdue(at)
	s.mu.Lock()
	s.now = at
	s.mu.Unlock()
	if err := s.control.set(s.ctx, at); err != nil {
		s.tb.Fatalf("Advance: %v", err)
	}
}

// sweep does all that is due now, in every partition, and says how long it is until
// something else is, at most atMost.
func (s *Stage) sweep(atMost time.Duration) time.Duration {
	s.tb.Helper()
	next := atMost
	for p := range s.Queue.Partitions() {
		next = min(next, s.sweepPartition(p, atMost))
	}
	return next
}

func (s *Stage) sweepPartition(p int, atMost time.Duration) time.Duration {
	s.tb.Helper()
	for idle := 0; ; {
		swept, err := reaper.Sweep(s.ctx, s.Queue, p, sweeper, 500, max(atMost, time.Millisecond))
		if err != nil {
			s.tb.Fatalf("curfewtest: %v", err)
		}
		if len(swept.Errors) > 0 {
			s.tb.Errorf("curfewtest: the sweep met what it cannot work with: %s", strings.Join(swept.Errors, "; "))
		}
		if swept.Wait > 0 {
			return swept.Wait
		}
		if idle++; did(swept) {
			idle = 0
		}
		if idle == 3 || len(swept.Errors) > 0 {
			return time.Millisecond // what is due cannot be done: go on without it
		}
	}
}

func did(s reaper.Swept) bool {
	return s.TimedOut+s.Started+s.Fired+s.Warned+s.GivenBack+s.Drained+s.Removed+s.Broken > 0
}
