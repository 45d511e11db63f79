package worker

import (
	"slices"
	"sync"
)

// slots are the worker's places for handlers, which the partitions share. A single partition that
// has tasks can take all slots. Partitions that all have more tasks than slots get equal shares, and
// take turns if there are fewer slots than partitions.
//
// A partition calls the methods while it holds its own lock. A method that can grant slots to other
// partitions returns their accounts: call wakeAll with them after that lock is released.
type slots struct {
	mu       sync.Mutex
	total    int
	free     int
	accounts int        // number of accounts that share the slots
	wanting  int        // number of accounts that want more slots than they hold
	waiting  []*account // accounts that want slots and got none, in the order of their turns
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

// acquire reserves up to limit slots and returns their number. If it is 0, the account is woken when
// slots are granted to it.
func (s *slots) acquire(a *account, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.wants {
		a.wants = true
		s.wanting++
	}
	s.grant(a)
	n := min(a.granted, limit)
	a.granted -= n
	if n == 0 && !a.waits {
		a.waits = true
		s.waiting = append(s.waiting, a)
	}
	return n
}

// acquireFree reserves up to n free slots, without regard to the account's share, and returns their
// number.
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

// fetched returns the slots that a fetch did not fill. hasMore means that the partition has more
// tasks; otherwise the account wants no more slots.
func (s *slots) fetched(a *account, unused int, hasMore bool) (woken []*account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.backlog = hasMore
	s.free += unused
	a.held -= unused
	if !hasMore {
		s.withdraw(a)
	}
	return s.grantWaiting()
}

// returnGranted returns the slots that were granted to an account which cannot use them now.
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
		// It is unknown whether the partition has tasks, and whether it answers. If it hangs, the
		// slots must not all hang with it, so it gets no more than an equal share.
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
			i++ // this account already has its share, but the next may not
			continue
		}
		a.waits = false
		s.waiting = slices.Delete(s.waiting, i, i+1)
		woken = append(woken, a)
	}
	return woken
}

// withdraw removes an account from the accounts that want slots.
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
