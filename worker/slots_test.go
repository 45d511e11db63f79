package worker

import (
	"math/rand/v2"
	"testing"
)

// room is slots with tenants that count how often they were woken.
func room(total, tenants int) (*slots, []*tenant, []int) {
	s := &slots{total: total, free: total, tenants: tenants}
	all, woken := make([]*tenant, tenants), make([]int, tenants)
	for i := range all {
		all[i] = &tenant{wake: func() { woken[i]++ }}
	}
	return s, all, woken
}

func TestSlots(t *testing.T) {
	t.Run("a lane alone with work has them all", func(t *testing.T) {
		s, lanes, _ := room(10, 2)
		n := s.take(lanes[0], 500)
		wake(s.answered(lanes[0], 0, false))
		if m := s.take(lanes[0], 500); n+m != 10 {
			t.Fatalf("took %d and then %d of 10", n, m)
		}
	})

	t.Run("who only looks does not take all with it", func(t *testing.T) {
		s, lanes, _ := room(10, 2)
		if n := s.take(lanes[0], 500); n != 5 {
			t.Fatalf("the first look of one of two lanes took %d of 10, want 5", n)
		}
	})

	t.Run("who holds its share still looks if nobody else wants slots", func(t *testing.T) {
		s, lanes, _ := room(10, 2)
		s.take(lanes[0], 500)
		s.answered(lanes[0], 0, true) // five long handlers, and no more work
		if n := s.take(lanes[0], 500); n == 0 {
			t.Fatal("free slots were refused to the only lane that wants them")
		}
	})

	t.Run("most bounds what is taken, and the rest is not lost", func(t *testing.T) {
		s, lanes, _ := room(1000, 1)
		if a, b := s.take(lanes[0], 500), s.take(lanes[0], 500); a != 500 || b != 500 {
			t.Fatalf("took %d and %d, want 500 and 500", a, b)
		}
	})

	t.Run("one slot goes round among four busy lanes", func(t *testing.T) {
		s, lanes, woken := room(1, 4)
		turns := make([]int, 4)
		holder := -1
		for i, lane := range lanes {
			if s.take(lane, 500) == 1 {
				holder = i
			}
		}
		for range 100 {
			turns[holder]++
			before := append([]int(nil), woken...)
			wake(s.release(lanes[holder], 1))
			wake(s.answered(lanes[holder], 0, false))
			if s.take(lanes[holder], 500) != 0 {
				t.Fatal("the lane that had the slot got it again before the others")
			}
			for i := range woken {
				if woken[i] > before[i] {
					holder = i
				}
			}
			if s.take(lanes[holder], 500) != 1 {
				t.Fatal("the lane that was woken has no slot")
			}
		}
		for i, n := range turns {
			if n != 25 {
				t.Errorf("lane %d had %d turns of 100, want 25", i, n)
			}
		}
	})

	t.Run("two busy lanes come to equal shares", func(t *testing.T) {
		s, lanes, _ := room(10, 2)
		lanes[0].proven, lanes[1].proven = true, true
		if n := s.take(lanes[0], 500); n != 10 {
			t.Fatalf("the first took %d of 10", n)
		}
		s.take(lanes[1], 500)
		for range 50 { // handlers of both end in turn, and both ask for more
			for _, lane := range lanes {
				if lane.held > 0 {
					s.release(lane, 1)
					s.take(lane, 500)
				}
			}
		}
		if a, b := lanes[0].held, lanes[1].held; a != 5 || b != 5 {
			t.Fatalf("they hold %d and %d of 10, want 5 and 5", a, b)
		}
	})

	t.Run("a lane that leaves gives back what it was granted", func(t *testing.T) {
		s, lanes, woken := room(1, 2)
		s.take(lanes[0], 1)
		s.take(lanes[1], 1)
		wake(s.release(lanes[0], 1)) // granted to 1, who does not want it any more
		if woken[1] != 1 {
			t.Fatal("the lane that waited was not woken")
		}
		s.answered(lanes[1], 0, true)
		if !s.all() {
			t.Fatal("a slot is lost")
		}
	})
}

// Random lanes, forever hungry or not: slots are never lost nor made, never idle
// while somebody waits, and no hungry lane is passed over.
func TestSlotsAreConserved(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		total, n := 1+random.IntN(8), 1+random.IntN(5)
		s, lanes, _ := room(total, n)
		taken, got := make([]int, n), make([]int, n)
		for range 2000 {
			i := random.IntN(n)
			switch random.IntN(4) {
			case 0, 1:
				k := s.take(lanes[i], 1+random.IntN(10))
				taken[i] += k
				got[i] += k
			case 2:
				if taken[i] > 0 {
					k := 1 + random.IntN(taken[i])
					taken[i] -= k
					wake(s.release(lanes[i], k))
				}
			case 3:
				unused := 0
				if taken[i] > 0 {
					unused = random.IntN(taken[i] + 1)
				}
				taken[i] -= unused
				wake(s.answered(lanes[i], unused, random.IntN(2) == 0))
			}
			if random.IntN(5) == 0 {
				wake(s.renounce(lanes[i]))
			}
			sum := s.free
			for i, lane := range lanes {
				sum += lane.held
				if lane.held != taken[i]+lane.granted {
					t.Fatalf("seed %d: lane %d holds %d, took %d and was granted %d", seed, i, lane.held, taken[i], lane.granted)
				}
			}
			if sum != total {
				t.Fatalf("seed %d: %d slots of %d", seed, sum, total)
			}
		}
		for i := range got {
			if got[i] == 0 {
				t.Errorf("seed %d: lane %d never got a slot", seed, i)
			}
		}
	}
}
