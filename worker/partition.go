package worker

import (
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// partition is the state of a worker in one partition: its claims, the outcomes that it has not
// reported yet, and whether there may be tasks to fetch.
//
// Code that holds the mu of one partition never locks another, which could deadlock. So accounts
// that were granted slots are woken after mu is released.
type partition struct {
	w       *Worker
	number  int
	account account

	mu         sync.Mutex
	held       map[claimKey]*attempt // from the claim until Redis has answered its outcome
	unreported []*attempt            // finished and not yet in a request, in the order they finished
	senders    int                   // goroutines that send requests
	closed     bool                  // Run has given up the handlers that still run
	sendSingly int                   // number of outcomes to send one by one, because Redis has refused a request with several
	trouble    trouble
	retryDelay time.Duration // pause after the last failure; 0 after a success

	// Fetching, see fetch.go.
	fetching     bool        // the partition may have tasks: fetch until it has none
	needsSlot    bool        // fetching, but no slot is free; slotGranted resets it
	token        bool        // the worker took a wake token: it must fetch, or pass the token on
	seq          int64       // of the last fetch
	startSeq     int64       // seq at the last startFetching: only the reply to a later fetch can end fetching
	openFetches  []int64     // seqs of the fetches under way
	emptyReplies int         // replies in a row that promised more tasks and gave none
	fetchAgain   bool        // there are tasks for this worker as soon as a claim has ended
	again        *time.Timer // fetches again while the worker is isolated

	idle     chan struct{} // signalled when there are no more tasks: await waits for some
	look     time.Duration // the longest time that await waits
	awaiting bool          // await waits, and can get a wake token
	beatNow  chan struct{} // signalled when a heartbeat must be sent at once

	renewed time.Time // when the last request that renewed the lease was sent
	clean   bool      // Redis cannot have given claims to this worker since the last heartbeat

	describedAt time.Time
	described   queue.WorkerState // the state that is stored in Redis with the description; "" if it may have none
	describing  bool              // sendDescription runs
}

func newPartition(w *Worker, number int) *partition {
	p := &partition{
		w: w, number: number, held: map[claimKey]*attempt{},
		idle: make(chan struct{}, 1), beatNow: make(chan struct{}, 1),
	}
	p.account.wake = p.slotGranted
	return p
}

// claims returns the held claims, with new progress, and the seq up to which all fetches are over.
// It reads both under one lock, so that each claim is either in the list or belongs to a fetch under
// way. Redis gives back every other claim.
func (p *partition) claims() (held []claim.Held, seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held = make([]claim.Held, 0, len(p.held))
	for _, a := range p.held {
		held = append(held, a.heldClaim())
	}
	seq = p.seq
	for _, fetchSeq := range p.openFetches {
		seq = min(seq, fetchSeq-1)
	}
	return held, seq
}

// reported reports whether all outcomes are reported and no call is under way.
func (p *partition) reported() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unreported) == 0 && p.senders == 0 && !p.awaiting
}

// close gives up the handlers that still run. Their outcomes are not reported.
func (p *partition) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.unreported = nil
}

// failed counts another failed call, and returns the pause before the next one.
func (p *partition) failed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.growDelay()
}

// growDelay returns the pause after another failure. Caller holds mu.
func (p *partition) growDelay() time.Duration {
	p.retryDelay = longer(p.retryDelay)
	return p.retryDelay
}

// hold adds an attempt to the claims. Caller holds mu.
func (p *partition) hold(a *attempt) {
	if _, known := p.held[a.key()]; !known {
		p.w.isolation.claims.Add(1)
	}
	p.held[a.key()] = a
}

// drop removes a claim. The caller holds mu, and calls claimEnded after it has released mu.
func (p *partition) drop(key claimKey) {
	if _, known := p.held[key]; known && p.w.isolation.claims.Add(-1) == 0 {
		p.w.isolation.ended.Store(true)
	}
	delete(p.held, key)
}
