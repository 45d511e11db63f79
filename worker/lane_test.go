package worker

import (
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

func TestSated(t *testing.T) {
	for _, c := range []struct {
		claim              string
		seq, since, newest int64
		asked, got         int
		more               bool
		want               bool
	}{
		{"all that was asked for came: there may be more", 5, 0, 5, 3, 3, false, false},
		{"less came, and there is no more", 5, 0, 5, 3, 2, false, true},
		{"nothing came", 5, 0, 5, 3, 0, false, true},
		{"less came, but there is more", 5, 0, 5, 3, 2, true, false},
		{"a later ask is under way: it knows better", 5, 0, 6, 3, 2, false, false},
		{"a token came after this ask was sent", 5, 5, 5, 3, 2, false, false},
		{"this ask was sent after the token came", 6, 5, 6, 3, 2, false, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			l := &lane{seq: c.newest, since: c.since, hungry: true, idle: make(chan struct{}, 1)}
			got := l.sated(queue.Ask{Seq: c.seq, N: c.asked}, c.got, c.more)
			if got != c.want || l.hungry == c.want || len(l.idle) == 1 != c.want {
				t.Errorf("sated = %v, and the lane is hungry: %v", got, l.hungry)
			}
		})
	}

	t.Run("promises without tasks are believed ten times", func(t *testing.T) {
		l := &lane{seq: 1, hungry: true, idle: make(chan struct{}, 1)}
		n := 1
		for ; !l.sated(queue.Ask{Seq: 1, N: 3}, 0, true); n++ {
		}
		if n != 10 {
			t.Errorf("%d times", n)
		}
	})
}

// A slot must not lie with a lane whose trip hangs while another lane wants it.
func TestAGrantIsPassedOnWhileATripIsUnderWay(t *testing.T) {
	w := &Worker{config: Config{Concurrency: 1}, slots: &slots{total: 1, accounts: 3}}
	hung, other := newLane(w, 0), newLane(w, 1)
	hung.hungry, hung.starved, hung.carriers = true, true, 1
	woken := 0
	other.account.wake = func() { woken++ }
	if w.slots.acquire(&hung.account, 1)+w.slots.acquire(&other.account, 1) != 0 {
		t.Fatal("there was a slot")
	}
	holder := &account{held: 1}
	wakeAll(w.slots.release(holder, 1)) // the hung lane is the first in line
	if woken != 1 || w.slots.acquire(&other.account, 1) != 1 {
		t.Fatalf("the other lane was woken %d times, and has no slot", woken)
	}
	if hung.starved {
		t.Error("the hung lane will not ask when its trip is back")
	}
}
