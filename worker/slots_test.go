package worker

import (
	"math/rand/v2"
	"testing"
)

// newSlots returns free slots, and accounts that count how often they were woken.
func newSlots(total, n int) (*slots, []*account, []int) {
	s := &slots{total: total, free: total, accounts: n}
	all, woken := make([]*account, n), make([]int, n)
	for i := range all {
		all[i] = &account{wake: func() { woken[i]++ }}
	}
	return s, all, woken
}

func TestSlots(t *testing.T) {
	t.Run("the only partition with tasks gets all slots", func(t *testing.T) {
		s, accounts, _ := newSlots(10, 2)
		n := s.acquire(accounts[0], 500)
		wakeAll(s.fetched(accounts[0], 0, true))
		if m := s.acquire(accounts[0], 500); n+m != 10 {
			t.Fatalf("got %d and then %d of 10", n, m)
		}
	})

	t.Run("the first fetch of a partition does not get all slots", func(t *testing.T) {
		s, accounts, _ := newSlots(10, 2)
		if n := s.acquire(accounts[0], 500); n != 5 {
			t.Fatalf("the first fetch of one of two partitions got %d of 10 slots, want 5", n)
		}
	})

	t.Run("a partition that holds its share gets more if no other wants slots", func(t *testing.T) {
		s, accounts, _ := newSlots(10, 2)
		s.acquire(accounts[0], 500)
		s.fetched(accounts[0], 0, false) // five long handlers, and no more tasks
		if n := s.acquire(accounts[0], 500); n == 0 {
			t.Fatal("the only partition that wants slots got none, although some are free")
		}
	})

	t.Run("most limits how many slots are acquired, and the other slots are not lost", func(t *testing.T) {
		s, accounts, _ := newSlots(1000, 1)
		if a, b := s.acquire(accounts[0], 500), s.acquire(accounts[0], 500); a != 500 || b != 500 {
			t.Fatalf("got %d and %d, want 500 and 500", a, b)
		}
	})

	t.Run("four busy partitions take turns with one slot", func(t *testing.T) {
		s, accounts, woken := newSlots(1, 4)
		turns := make([]int, 4)
		holder := -1
		for i, a := range accounts {
			if s.acquire(a, 500) == 1 {
				holder = i
			}
		}
		for range 100 {
			turns[holder]++
			before := append([]int(nil), woken...)
			wakeAll(s.release(accounts[holder], 1))
			wakeAll(s.fetched(accounts[holder], 0, true))
			if s.acquire(accounts[holder], 500) != 0 {
				t.Fatal("the partition that had the slot got it again before the others")
			}
			for i := range woken {
				if woken[i] > before[i] {
					holder = i
				}
			}
			if s.acquire(accounts[holder], 500) != 1 {
				t.Fatal("the partition that was woken has no slot")
			}
		}
		for i, n := range turns {
			if n != 25 {
				t.Errorf("partition %d had %d turns of 100, want 25", i, n)
			}
		}
	})

	t.Run("two busy partitions reach equal shares", func(t *testing.T) {
		s, accounts, _ := newSlots(10, 2)
		accounts[0].backlog, accounts[1].backlog = true, true
		if n := s.acquire(accounts[0], 500); n != 10 {
			t.Fatalf("the first got %d of 10", n)
		}
		s.acquire(accounts[1], 500)
		for range 50 { // handlers of both return in turn, and both acquire slots again
			for _, a := range accounts {
				if a.held > 0 {
					s.release(a, 1)
					s.acquire(a, 500)
				}
			}
		}
		if a, b := accounts[0].held, accounts[1].held; a != 5 || b != 5 {
			t.Fatalf("the partitions hold %d and %d of 10 slots, want 5 and 5", a, b)
		}
	})

	t.Run("a partition that wants no more slots returns what it was granted", func(t *testing.T) {
		s, accounts, woken := newSlots(1, 2)
		s.acquire(accounts[0], 1)
		s.acquire(accounts[1], 1)
		wakeAll(s.release(accounts[0], 1)) // the slot is granted to account 1, which no longer wants it
		if woken[1] != 1 {
			t.Fatal("the partition that waited was not woken")
		}
		s.fetched(accounts[1], 0, false)
		if !s.allFree() {
			t.Fatal("a slot is lost")
		}
	})
}

// Random partitions acquire and release slots. The number of slots stays the same, and each partition
// gets some.
func TestSlotsAreConserved(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		total, n := 1+random.IntN(8), 1+random.IntN(5)
		s, accounts, _ := newSlots(total, n)
		taken, got := make([]int, n), make([]int, n)
		for range 2000 {
			i := random.IntN(n)
			switch random.IntN(4) {
			case 0, 1:
				k := s.acquire(accounts[i], 1+random.IntN(10))
				taken[i] += k
				got[i] += k
			case 2:
				if taken[i] > 0 {
					k := 1 + random.IntN(taken[i])
					taken[i] -= k
					wakeAll(s.release(accounts[i], k))
				}
			case 3:
				unused := 0
				if taken[i] > 0 {
					unused = random.IntN(taken[i] + 1)
				}
				taken[i] -= unused
				wakeAll(s.fetched(accounts[i], unused, random.IntN(2) == 1))
			}
			if random.IntN(5) == 0 {
				wakeAll(s.returnGranted(accounts[i]))
			}
			sum := s.free
			for i, a := range accounts {
				sum += a.held
				if a.held != taken[i]+a.granted {
					t.Fatalf("seed %d: partition %d holds %d, took %d and was granted %d", seed, i, a.held, taken[i], a.granted)
				}
			}
			if sum != total {
				t.Fatalf("seed %d: %d slots are free or held, want %d", seed, sum, total)
			}
		}
		for i := range got {
			if got[i] == 0 {
				t.Errorf("seed %d: partition %d never got a slot", seed, i)
			}
		}
	}
}
