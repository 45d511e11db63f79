package worker

import (
	"testing"
	"time"

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
		{"all that was asked for came: there may be more", 5, 0, 5, 3, 3, false, false},
		{"less came, and there is no more", 5, 0, 5, 3, 2, false, true},
		{"nothing came", 5, 0, 5, 3, 0, false, true},
		{"less came, but there is more", 5, 0, 5, 3, 2, true, false},
		{"a later fetch is under way: its reply decides", 5, 0, 6, 3, 2, false, false},
		{"a token came after this fetch was sent", 5, 5, 5, 3, 2, false, false},
		{"this fetch was sent after the token came", 6, 5, 6, 3, 2, false, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := &partition{seq: c.newest, startSeq: c.start, fetching: true, idle: make(chan struct{}, 1)}
			got := p.doneFetching(queue.Ask{Seq: c.seq, N: c.asked}, replyOf(c.got, c.more))
			if got != c.want || p.fetching == c.want || len(p.idle) == 1 != c.want {
				t.Errorf("doneFetching = %v, and the partition is fetching: %v", got, p.fetching)
			}
		})
	}

	t.Run("ten empty replies that promise more tasks are believed", func(t *testing.T) {
		p := &partition{seq: 1, fetching: true, idle: make(chan struct{}, 1)}
		n := 1
		for ; !p.doneFetching(queue.Ask{Seq: 1, N: 3}, replyOf(0, true)); n++ {
		}
		if n != 10 {
			t.Errorf("%d times", n)
		}
	})

	t.Run("an empty reply that ended late tasks is progress", func(t *testing.T) {
		p := &partition{seq: 1, fetching: true, idle: make(chan struct{}, 1)}
		reply := replyOf(0, true)
		reply.Ended = 1
		for range 100 {
			if p.doneFetching(queue.Ask{Seq: 1, N: 3}, reply) {
				t.Fatal("the partition stopped fetching")
			}
		}
	})
}

func replyOf(claims int, more bool) *queue.Reply {
	r := &queue.Reply{Claims: make([]queue.Claim, claims), Look: time.Second}
	if more {
		r.Look = 0
	}
	return r
}

// A partition whose request hangs must not keep a slot that another one wants.
func TestAGrantIsPassedOnWhileARequestIsUnderWay(t *testing.T) {
	w := &Worker{config: Config{Concurrency: 1}, slots: &slots{total: 1, accounts: 3}}
	hung, other := newPartition(w, 0), newPartition(w, 1)
	hung.fetching, hung.needsSlot, hung.senders = true, true, 1
	woken := 0
	other.account.wake = func() { woken++ }
	if w.slots.acquire(&hung.account, 1)+w.slots.acquire(&other.account, 1) != 0 {
		t.Fatal("there was a slot")
	}
	holder := &account{held: 1}
	wakeAll(w.slots.release(holder, 1)) // the hung partition is the first that waits
	if woken != 1 || w.slots.acquire(&other.account, 1) != 1 {
		t.Fatalf("the other partition was woken %d times, and has no slot", woken)
	}
	if hung.needsSlot {
		t.Error("the hung partition will not fetch after its reply")
	}
}
