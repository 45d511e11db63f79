package worker

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

func TestDoneFetching(t *testing.T) {
	for _, c := range []struct {
		claim              string
		seq, start, newest int64
		asked, got         int
		more               bool
		want               bool
	}{
		{"as many tasks as requested: there may be more", 5, 0, 5, 3, 3, false, false},
		{"fewer tasks, and there are no more", 5, 0, 5, 3, 2, false, true},
		{"no tasks", 5, 0, 5, 3, 0, false, true},
		{"fewer tasks, but there are more", 5, 0, 5, 3, 2, true, false},
		{"a later fetch is under way: its reply decides", 5, 0, 6, 3, 2, false, false},
		{"a token came after this fetch was sent", 5, 5, 5, 3, 2, false, false},
		{"this fetch was sent after the token came", 6, 5, 6, 3, 2, false, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := &partition{seq: c.newest, startSeq: c.start, fetching: true, idle: make(chan struct{}, 1)}
			got := p.doneFetching(claim.Ask{Seq: c.seq, N: c.asked}, replyOf(c.got, c.more))
			if got != c.want || p.fetching == c.want || len(p.idle) == 1 != c.want {
				t.Errorf("doneFetching = %v, want %v; fetching is %v, %d idle signals", got, c.want, p.fetching, len(p.idle))
			}
		})
	}

	t.Run("fetching stops after ten empty replies that promise more tasks", func(t *testing.T) {
		p := &partition{seq: 1, fetching: true, idle: make(chan struct{}, 1)}
		n := 1
		for ; !p.doneFetching(claim.Ask{Seq: 1, N: 3}, replyOf(0, true)); n++ {
		}
		if n != 10 {
			t.Errorf("fetching stopped after %d replies, want 10", n)
		}
	})

	t.Run("an empty reply that ended late tasks does not count as empty", func(t *testing.T) {
		p := &partition{seq: 1, fetching: true, idle: make(chan struct{}, 1)}
		reply := replyOf(0, true)
		reply.Ended = 1
		for range 100 {
			if p.doneFetching(claim.Ask{Seq: 1, N: 3}, reply) {
				t.Fatal("the partition stopped fetching")
			}
		}
	})
}

func replyOf(claims int, more bool) *claim.Reply {
	r := &claim.Reply{Claims: make([]queue.Claim, claims), Look: time.Second}
	if more {
		r.Look = 0
	}
	return r
}

// A partition whose request hangs must not keep a slot that another partition wants.
func TestASlotGrantedToAPartitionWithAHangingRequestIsPassedOn(t *testing.T) {
	w := &Worker{config: Config{Concurrency: 1}, slots: &slots{total: 1, accounts: 3}}
	hung, other := newPartition(w, 0), newPartition(w, 1)
	hung.fetching, hung.needsSlot, hung.senders = true, true, 1
	woken := 0
	other.account.wake = func() { woken++ }
	if w.slots.acquire(&hung.account, 1)+w.slots.acquire(&other.account, 1) != 0 {
		t.Fatal("a slot was free")
	}
	holder := &account{held: 1}
	wakeAll(w.slots.release(holder, 1)) // the hung partition is the first in the list of waiting accounts
	if woken != 1 || w.slots.acquire(&other.account, 1) != 1 {
		t.Fatalf("the other partition was woken %d times, want once, and with a slot", woken)
	}
	if hung.needsSlot {
		t.Error("the hung partition has needsSlot, so it would not fetch after its reply")
	}
}
