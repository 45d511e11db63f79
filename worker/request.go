package worker

import (
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

const (
	maxOutcomes     = 500     // in one request
	maxOutcomeBytes = 4 << 20 // of outcomes in one request
	maxFetch        = 500     // tasks in one request

	// outcomeOverhead is the approximate size of an outcome without its texts.
	outcomeOverhead = 100
)

// request is one call to Redis, which reports outcomes, fetches tasks, or both.
type request struct {
	attempts []*attempt
	outcomes []queue.Outcome // of attempts, in the same order
	fetch    claim.Ask
	alone    bool // the reply says that the worker takes nothing beside one task
	slots    int  // reserved for the tasks it fetches; guarded by the partition's mu
	sent     time.Time
}

// requestDue reports whether to send a request now, while open others are under way. Outcomes are
// collected while a request is under way. A second request is sent when a quarter of the slots has
// finished, so that Redis has work before the first reply is handled. There is no timer, because a
// single outcome must not be delayed. Caller holds mu.
func (p *partition) requestDue(open int) bool {
	if open > 0 {
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

// addOutcomes moves outcomes to a request, up to its limits. Caller holds mu.
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

// fitting returns the number of outcomes that fit into the next request. Caller holds mu.
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
