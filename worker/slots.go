package worker

import (
	"slices"
	"sync"
)

// slots are the places that handlers run in. The lanes share them: a lane alone may
// have them all, lanes that all have more work than slots get equal shares, and when
// there are fewer slots than such lanes they take turns.
//
// A lane calls them under its own lock. What may give others a slot returns who got
// one; they are to be woken when that lock is released.
type slots struct {
	mu      sync.Mutex
	total   int
	free    int
	tenants int
	hungry  int       // tenants that want more than they have
	waiting []*tenant // of these, who got nothing; the first to come is the first to get
}

// tenant is a lane's account with the slots.
type tenant struct {
	wake    func() // called, without a lock, when a slot was granted to one that waited
	held    int    // taken or granted, and not released
	granted int    // of these, what it has not taken up yet
	waiting bool
	hungry  bool
	proven  bool // its last ask was met in full
}

// take reserves up to most slots. If there is none, t is woken once it has one.
func (s *slots) take(t *tenant, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.hungry {
		t.hungry = true
		s.hungry++
	}
	s.give(t)
	n := min(t.granted, most)
	t.granted -= n
	if n == 0 && !t.waiting {
		t.waiting = true
		s.waiting = append(s.waiting, t)
	}
	return n
}

// give grants a tenant what there is, up to its share.
func (s *slots) give(t *tenant) bool {
	n := min(s.free, part(s.total, s.hungry)-t.held)
	if !t.proven {
		// It only looks whether there is work: its partition may be the one that
		// hangs, and must not take all slots with it.
		n = min(n, part(s.total, s.tenants))
	}
	if n <= 0 {
		return false
	}
	s.free -= n
	t.held += n
	t.granted += n
	return true
}

// part is the total divided among n, rounded up.
func part(total, n int) int { return (total + n - 1) / n }

// release returns n slots.
func (s *slots) release(t *tenant, n int) (woken []*tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	t.held -= n
	return s.pass()
}

// answered returns the slots of an ask that were not filled. sated says that t
// wants no more for now; else it is known to have more work.
func (s *slots) answered(t *tenant, unused int, sated bool) (woken []*tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.proven = !sated
	s.free += unused
	t.held -= unused
	if sated {
		s.leave(t)
	}
	return s.pass()
}

// renounce returns what was granted to a tenant that cannot take it up now.
func (s *slots) renounce(t *tenant) (woken []*tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += t.granted
	t.held -= t.granted
	t.granted = 0
	return s.pass()
}

// grab reserves up to n slots that happen to be free.
func (s *slots) grab(t *tenant, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.free)
	s.free -= n
	t.held += n
	return n
}

// leave takes a tenant out of those that want slots.
func (s *slots) leave(t *tenant) {
	s.free += t.granted
	t.held -= t.granted
	t.granted = 0
	if t.hungry {
		t.hungry = false
		s.hungry--
	}
	if t.waiting {
		t.waiting = false
		s.waiting = slices.DeleteFunc(s.waiting, func(other *tenant) bool { return other == t })
	}
}

// pass gives what is free to those that wait, in the order they came.
func (s *slots) pass() (woken []*tenant) {
	for i := 0; s.free > 0 && i < len(s.waiting); {
		t := s.waiting[i]
		if !s.give(t) {
			i++ // it has its share; who comes after it may not
			continue
		}
		t.waiting = false
		s.waiting = slices.Delete(s.waiting, i, i+1)
		woken = append(woken, t)
	}
	return woken
}

func wake(tenants []*tenant) {
	for _, t := range tenants {
		t.wake()
	}
}

// some tells whether a slot is free.
func (s *slots) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free > 0
}

// all tells whether every slot is free.
func (s *slots) all() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free == s.total
}
