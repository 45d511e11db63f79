package worker

import (
	"slices"
	"sync"
)

// slots are the places in which handlers run. The partitions share them. If only one partition has
// tasks, it can take all slots. Partitions that all have more tasks than slots get equal shares, and
// take turns if there are fewer slots than partitions.
//
// A partition calls the methods while it holds its own lock. A method that can give slots to other
// partitions returns their accounts: call wakeAll with them after that lock is released.
type slots struct {
	mu       sync.Mutex
	total    int
	free     int
	accounts int        // how many accounts share the slots
	wanting  int        // how many accounts want more slots than they have
	waiting  []*account // accounts that want slots and got none, in the order in which they get some
}

// account is one partition's part of the slots.
type account struct {
	wake    func() // called without a lock when a slot was granted to an account that waited
	held    int    // acquired or granted, and not released
	granted int    // the part of held that the partition has not acquired yet
	wants   bool   // is counted in slots.wanting
	waits   bool   // is in slots.waiting
	backlog bool   // the partition's last fetch left tasks in Redis
}

// acquire reserves up to most slots and returns how many it got. If it got none, a is woken when
// slots are granted to it.
func (s *slots) acquire(a *account, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.wants {
		a.wants = true
		s.wanting++
	}
	s.grant(a)
	n := min(a.granted, most)
	a.granted -= n
	if n == 0 && !a.waits {
		a.waits = true
		s.waiting = append(s.waiting, a)
	}
	return n
}

// acquireFree reserves up to n slots that are free, without regard to the account's share, and
// returns how many it got.
func (s *slots) acquireFree(a *account, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.free)
	s.free -= n
	a.held += n
	return n
}

// release returns n slots.
func (s *slots) release(a *account, n int) (woken []*account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	a.held -= n
	return s.grantWaiting()
}

// fetched returns the slots that a fetch did not fill. more means that the partition has more tasks;
// otherwise the account wants no more slots.
func (s *slots) fetched(a *account, unused int, more bool) (woken []*account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.backlog = more
	s.free += unused
	a.held -= unused
	if !more {
		s.withdraw(a)
	}
	return s.grantWaiting()
}

// returnGranted returns what was granted to an account that cannot use it now.
func (s *slots) returnGranted(a *account) (woken []*account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeGranted(a)
	return s.grantWaiting()
}

// allFree reports whether every slot is free.
func (s *slots) allFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free == s.total
}

// grant gives an account the free slots up to its share. Caller holds mu, as for the
// methods below.
func (s *slots) grant(a *account) bool {
	n := min(s.free, share(s.total, s.wanting)-a.held)
	if !a.backlog {
		// It is unknown whether its partition has tasks, and whether it answers. If it does not
		// answer, the other partitions must have slots.
		n = min(n, share(s.total, s.accounts))
	}
	if n <= 0 {
		return false
	}
	s.free -= n
	a.held += n
	a.granted += n
	return true
}

// share is the total divided by n, rounded up.
func share(total, n int) int { return (total + n - 1) / n }

// grantWaiting gives the free slots to the waiting accounts, in their order.
func (s *slots) grantWaiting() (woken []*account) {
	for i := 0; s.free > 0 && i < len(s.waiting); {
		a := s.waiting[i]
		if !s.grant(a) {
			i++ // this account has its share already; the next one may not
			continue
		}
		a.waits = false
		s.waiting = slices.Delete(s.waiting, i, i+1)
		woken = append(woken, a)
	}
	return woken
}

// withdraw removes an account from those that want slots.
func (s *slots) withdraw(a *account) {
	s.takeGranted(a)
	if a.wants {
		a.wants = false
		s.wanting--
	}
	if a.waits {
		a.waits = false
		s.waiting = slices.DeleteFunc(s.waiting, func(other *account) bool { return other == a })
	}
}

func (s *slots) takeGranted(a *account) {
	s.free += a.granted
	a.held -= a.granted
	a.granted = 0
}

func wakeAll(accounts []*account) {
	for _, a := range accounts {
		a.wake()
	}
}
