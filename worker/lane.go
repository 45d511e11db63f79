package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// lane is a worker's traffic with one partition: the claims that it holds there, the
// outcomes that wait for a trip, and whether there is more to ask for.
//
// Lanes never lock each other: who was given a slot is woken after unlocking.
type lane struct {
	w         *Worker
	partition int
	account   account

	mu       sync.Mutex
	held     map[hold]*attempt // from their claim until their outcome was answered
	ended    []*attempt        // in the order they ended: their outcomes wait for a trip
	carriers int               // goroutines that make trips
	closed   bool              // the worker is gone; whatever ends now is nobody's

	seq     int64   // of the last ask
	asking  []int64 // the seqs of asks that are under way
	hungry  bool    // the partition may have work for us
	starved bool    // hungry, but without a slot: the slots wake us
	since   int64   // only asks after this one can tell that there is no work
	barren  int     // answers in a row that promised more and gave nothing
	token   bool    // we took a wake token, and must ask or pass it on
	careful int     // outcomes to send one by one, since one of them may be poison
	pause   time.Duration

	idle     chan struct{} // signalled when there is no more work: wait for some
	blocking bool          // a call to AwaitWork is under way
	awake    chan struct{} // signalled when it returned
	again    chan struct{} // signalled when a heartbeat is due at once
}

// hold is a claim, by what no other one has.
type hold struct {
	id    string
	epoch int64
}

func newLane(w *Worker, partition int) *lane {
	l := &lane{
		w: w, partition: partition, held: map[hold]*attempt{},
		idle: make(chan struct{}, 1), awake: make(chan struct{}, 1), again: make(chan struct{}, 1),
	}
	l.account.wake = l.granted
	return l
}

// look has the lane ask for work: there may be some. token says that Redis said so,
// and told nobody else.
func (l *lane) look(token bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hungry, l.since = !l.w.stopping.Load(), l.seq
	l.token = l.token || token
	l.kick()
}

// granted is called when there is a slot for a lane that was without one. If a trip
// is under way the slot goes to others: the trip may hang, and when it is back it
// asks by itself.
func (l *lane) granted() {
	l.mu.Lock()
	l.starved = false
	var woken []*account
	if !l.kick() {
		woken = l.w.slots.returnGranted(&l.account)
	}
	l.mu.Unlock()
	wakeAll(woken)
}

// end takes the outcome of an attempt whose handler has returned.
func (l *lane) end(a *attempt) {
	l.w.counts.running.Add(-1)
	l.mu.Lock()
	a.ended = true
	if l.held[a.held()] != a {
		l.w.counts.stray.Add(-1) // stopped: the task is not ours any more
	} else if a.outcome.Verb == "" { // it has given its claim up by itself
		delete(l.held, a.held())
		l.w.counts.suspended.Add(1)
	} else if !l.closed {
		l.ended = append(l.ended, a)
	}
	// After the outcome, so that who sees all slots free sees all outcomes too.
	woken := l.w.slots.release(&l.account, 1)
	l.kick()
	l.mu.Unlock()
	wakeAll(woken)
	l.w.signal()
}

// stop ends the context of an attempt that Redis ended or gave to somebody else. Its
// slot is free when the handler returns.
func (l *lane) stop(s queue.Stop) {
	l.mu.Lock()
	held := hold{s.ID, s.Epoch}
	a := l.held[held]
	if a == nil || a.ended {
		l.mu.Unlock()
		return // it was faster, or this is old news
	}
	// In its grace the claim is the attempt's still, and its outcome ends the task.
	// Heartbeats say so again and again.
	again := a.stopping
	a.stopping = true
	if s.Reason != "cancelling" {
		delete(l.held, held)
		l.w.counts.stray.Add(1)
	}
	l.mu.Unlock()
	if !again {
		l.w.counts.stopped.Add(1)
		a.cancel(stopCause(s.Reason))
	}
}

// holding is what a heartbeat says: the claims held, with what is new of their
// progress, and the seq up to which every ask was answered or given up. Both are of one instant, so that a claim is either
// named or of an ask that counts as open.
func (l *lane) holding() (held []queue.Held, known int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held = make([]queue.Held, 0, len(l.held))
	for _, a := range l.held {
		held = append(held, a.saying())
	}
	known = l.seq
	for _, seq := range l.asking {
		known = min(known, seq-1)
	}
	return held, known
}

// halt stops asking for work.
func (l *lane) halt() {
	l.mu.Lock()
	l.hungry = false
	woken := l.satisfied(0)
	l.kick() // a token must still be passed on
	l.mu.Unlock()
	wakeAll(woken)
}

// satisfied returns slots that were not used, and gives up the wait for others.
// Caller holds mu.
func (l *lane) satisfied(unused int) (woken []*account) {
	l.starved = false
	return l.w.slots.fetched(&l.account, unused, false)
}

// close parts with handlers that have not returned.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.ended = nil
}

// reported tells whether nothing is under way or left to say.
func (l *lane) reported() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended) == 0 && l.carriers == 0 && !l.blocking
}

// open notes an ask that goes out. Caller holds mu.
func (l *lane) open(seq int64) { l.asking = append(l.asking, seq) }

// settle notes that an ask was answered or given up. Caller holds mu.
func (l *lane) settle(seq int64) {
	l.asking = slices.DeleteFunc(l.asking, func(s int64) bool { return s == seq })
}
