package worker

import (
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
)

// maxEmptyReplies is the number of consecutive replies that promise more tasks and return none,
// after which the partition counts as empty.
const maxEmptyReplies = 10

// startFetching makes the partition fetch until it has no more tasks. token means that the worker
// took a wake token, so Redis notifies no other worker of these tasks.
func (p *partition) startFetching(token bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumeFetching(token)
	p.startSender()
}

// resumeFetching is startFetching without a request. Caller holds mu.
func (p *partition) resumeFetching(token bool) {
	p.fetching, p.startSeq, p.fetchAgain = !p.w.stopping.Load(), p.seq, false
	p.token = p.token || token
}

// stopFetching is called when the worker shuts down.
func (p *partition) stopFetching() {
	p.mu.Lock()
	p.fetching = false
	woken := p.withdrawFromSlots(0)
	p.startSender() // a fetch must still pass a token on
	p.mu.Unlock()
	wakeAll(woken)
}

// slotGranted is called when the partition, which had no slot, was granted one. If it cannot send a
// request now, it returns the slot to the other partitions. The requests under way may hang; after
// their replies the partition fetches anyway.
func (p *partition) slotGranted() {
	p.mu.Lock()
	p.needsSlot = false
	var woken []*account
	if !p.startSender() {
		woken = p.w.slots.returnGranted(&p.account)
	}
	p.mu.Unlock()
	wakeAll(woken)
}

// canFetch reports whether the partition wants to fetch and can acquire slots. Caller holds mu.
func (p *partition) canFetch() bool { return p.fetching && !p.needsSlot && p.w.isolation.allows(p) }

// addFetch adds a fetch to a request, for as many tasks as it has slots. Caller holds mu.
func (p *partition) addFetch(r *request) {
	p.token = false
	p.seq++
	p.openFetches = append(p.openFetches, p.seq)
	r.fetch = claim.Ask{N: r.slots, Seq: p.seq, Lease: p.w.config.Lease, Elsewhere: p.heldElsewhere(), Rests: p.w.isolation.rests.Load() > time.Now().UnixMicro(), Quotas: p.w.queues.randomQuotas(r.slots)}
}

// fetchOver records that a fetch was answered or has failed. Caller holds mu.
func (p *partition) fetchOver(seq int64) {
	p.openFetches = slices.DeleteFunc(p.openFetches, func(s int64) bool { return s == seq })
}

// returnUnused returns the slots of a request that the reply did not fill. Caller holds mu.
func (p *partition) returnUnused(r *request, reply *claim.Reply, started int) (woken []*account) {
	unused := r.slots - started
	r.slots = 0
	switch {
	case r.fetch.N == 0:
		return nil
	case p.doneFetching(r.fetch, reply):
		return p.withdrawFromSlots(unused)
	}
	return p.w.slots.fetched(&p.account, unused, true)
}

// doneFetching decides from the reply to a fetch whether the partition stops fetching. If the
// partition has no more tasks, it wakes await. Caller holds mu.
func (p *partition) doneFetching(fetch claim.Ask, reply *claim.Reply) bool {
	n, hasMore := len(reply.Claims), reply.More()
	if n == 0 && hasMore && reply.Ended == 0 {
		p.emptyReplies++
	} else {
		p.emptyReplies = 0
	}
	switch {
	case !p.fetching:
		return true
	case reply.Alone: // without notice to await: the worker must take no wake token
		p.fetching = false
		return true
	case n == fetch.N:
		return false
	case hasMore && p.emptyReplies < maxEmptyReplies:
		return false
	case fetch.Seq != p.seq || fetch.Seq <= p.startSeq:
		return false // there is a later fetch, or a wake token came after this fetch was sent
	}
	p.fetching, p.look, p.fetchAgain = false, reply.Look, reply.Waits
	notify(p.idle)
	return true
}

// withdrawFromSlots returns unused slots. The partition then no longer wants slots. Caller holds mu.
func (p *partition) withdrawFromSlots(unused int) (woken []*account) {
	p.needsSlot = false
	return p.w.slots.fetched(&p.account, unused, false)
}
