package curfewtest

import (
	"math"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/reaper"
)

// sweeper is the name of the stage as a reaper. It always has the turn.
const sweeper = "curfewtest"

// last is the last instant that the clock of the embedded server supports.
var last = time.Unix(0, math.MaxInt64)

// Now returns the instant of the clock.
func (s *Stage) Now() time.Time {
	if s.bubble {
		return inMS(time.Now())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// inMS returns the time as Redis keeps it.
func inMS(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }

// Advance moves the clock by d. It stops at each instant at which something is due, so that tasks
// start, end and are removed at their own instants. For example, a task with a delay of 5 s and a
// QueueTimeout of 10 s has ended after Advance(time.Minute). Advance(0) writes the changes that are due now. It runs no
// handlers. Parts of a millisecond are rounded up. The test fails if d is negative.
//
// A handler can call Advance. If its attempt is over by then, its context has ended when Advance
// returns.
func (s *Stage) Advance(d time.Duration) {
	s.tb.Helper()
	if d < 0 {
		s.tb.Fatalf("Advance(%v): the clock cannot go back", d)
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	for end := s.Now().Add((d + time.Millisecond - 1).Truncate(time.Millisecond)); ; {
		rest := end.Sub(s.Now())
		wait := s.sweep(rest)
		if rest <= 0 {
			s.stopOverdue(s.Now()) // attempts that the sweeps have ended
			return
		}
		s.move(min(wait, rest))
	}
}

// move sets the clock forward, and ends the contexts of attempts that are then over.
func (s *Stage) move(d time.Duration) {
	s.tb.Helper()
	d = max(d, time.Millisecond) // the finest that Redis keeps
	at := s.Now().Add(d)
	if at.After(last) {
		s.tb.Fatalf("The clock cannot go to %v: the last year that it supports is 2262.", at.UTC())
	}
	// Before the clock of Redis moves: a stop that Redis publishes arrives later, and its cause is less precise.
	s.stopOverdue(at)
	s.mu.Lock()
	s.now = at
	s.mu.Unlock()
	if err := s.control.set(s.ctx, at); err != nil {
		s.tb.Fatalf("Advance: %v", err)
	}
}

// sweep writes the due changes of every partition. It returns the time until the next due change, at most atMost.
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
	for {
		swept, err := reaper.Sweep(s.ctx, s.Queue, p, sweeper, 500, max(atMost, time.Millisecond))
		if err != nil {
			s.tb.Fatalf("curfewtest: %v", err)
		}
		if len(swept.Errors) > 0 {
			s.tb.Errorf("curfewtest: the sweep left out broken records: %s", strings.Join(swept.Errors, "; "))
		}
		switch {
		case swept.Wait > 0:
			return swept.Wait
		case len(swept.Errors) > 0:
			return time.Millisecond // a due change cannot be written: continue without it
		}
	}
}
