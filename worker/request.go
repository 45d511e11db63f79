package worker

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

const (
	maxOutcomes     = 500     // in one request
	maxOutcomeBytes = 4 << 20 // of outcomes in one request
	maxFetch        = 500     // tasks in one request

	// outcomeOverhead is about how many bytes an outcome has besides its texts.
	outcomeOverhead = 100
)

// request is one call to Redis. It reports outcomes, fetches tasks, or does both.
type request struct {
	attempts []*attempt
	outcomes []queue.Outcome // of attempts, in the same order
	fetch    queue.Ask
	slots    int // reserved for the tasks it fetches; guarded by the partition's mu
	sent     time.Time
}

// requestDue reports whether to send a request now; others is how many are under way. While one
// request is under way, outcomes are collected. A second one is sent when a quarter of the slots has
// finished, so that Redis has work before the first reply is handled. There is no timer. Caller holds
// mu.
func (p *partition) requestDue(others int) bool {
	if others > 0 {
		return len(p.unreported) >= max(p.w.config.Concurrency/4, 1)
	}
	return len(p.unreported) > 0 || p.canFetch() || p.token
}

// nextRequest returns the next request of a sender. If there is nothing to send, it returns nil, and
// the caller no longer counts as a sender.
func (p *partition) nextRequest() *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.requestDue(p.senders-1) {
		p.senders--
		return nil
	}
	r := new(request)
	if p.canFetch() {
		r.slots = p.w.slots.acquire(&p.account, maxFetch)
		p.needsSlot = r.slots == 0
	}
	p.addOutcomes(r)
	switch {
	case r.slots > 0:
		p.addFetch(r)
	case len(r.attempts) > 0:
	case p.token:
		p.addFetch(r) // a fetch of 0 tasks passes the token on
	default:
		p.senders--
		return nil
	}
	return r
}

// addOutcomes moves as many outcomes to a request as it can have. Caller holds mu.
func (p *partition) addOutcomes(r *request) {
	n := p.fitting()
	if n == 0 {
		return
	}
	r.attempts = p.unreported[:n:n]
	p.unreported = p.unreported[n:]
	if len(p.unreported) == 0 {
		p.unreported = nil
	}
	r.outcomes = make([]queue.Outcome, n)
	for i, a := range r.attempts {
		r.outcomes[i] = a.outcome
	}
}

// fitting returns how many outcomes the next request can have. Caller holds mu.
func (p *partition) fitting() int {
	n, size := 0, 0
	for n < len(p.unreported) && n < maxOutcomes {
		o := &p.unreported[n].outcome
		size += outcomeOverhead + len(o.ID) + len(o.Result) + len(o.Error)
		if n > 0 && size > maxOutcomeBytes {
			break
		}
		n++
		if p.sendSingly > 0 {
			p.sendSingly--
			break
		}
	}
	return n
}
