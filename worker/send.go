package worker

import (
	"errors"
	"runtime"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	maxSenders  = 2 // senders of a partition, so that Redis and the handlers work at the same time
	maxRefusals = 3 // refusals of an outcome before it is dropped
)

// startSender starts a goroutine that sends requests, if a request is due, and reports whether it
// did. The goroutine ends when there is nothing to send. Caller holds mu.
func (p *partition) startSender() bool {
	if p.closed || p.senders == maxSenders || !p.requestDue(p.senders) {
		return false
	}
	p.senders++
	p.w.background.Go(p.sendAll)
	return true
}

// sendAll sends requests while one is due.
func (p *partition) sendAll() {
	defer p.w.drainStep()
	for {
		// Handlers that are about to return run first, so that their outcomes go into this request.
		runtime.Gosched()
		r := p.nextRequest()
		if r == nil {
			return
		}
		r.sent = time.Now()
		if reply, err := p.send(r); err != nil {
			sleep(p.w.callCtx, p.handleError(r, err))
		} else {
			p.handleReply(r, &reply)
		}
	}
}

// send makes the call of a request.
func (p *partition) send(r *request) (claim.Reply, error) {
	w := p.w
	if r.fetch.N > 0 && len(w.partitions) > 1 {
		defer p.watchSlots(r)()
	}
	switch {
	case len(r.outcomes) > 0:
		return claim.Of(w.q).Settle(w.callCtx, p.number, w.id, queue.NewCall(), r.outcomes, r.fetch)
	case r.fetch.N > 0:
		// Shutdown cancels this call. If Redis claims tasks for it, endLeases gives them back.
		return claim.Of(w.q).Fetch(w.fetchCtx, p.number, w.id, r.fetch)
	}
	return claim.Of(w.q).Fetch(w.callCtx, p.number, w.id, r.fetch)
}

// handleReply settles the attempts of a request, and starts attempts for the tasks fetched.
func (p *partition) handleReply(r *request, reply *claim.Reply) {
	received := time.Now()
	p.mu.Lock()
	for i, a := range r.attempts {
		if !a.settled(reply.Verdicts[i]) {
			p.unreported, r.attempts[i] = append(p.unreported, a), nil
		}
	}
	p.fetchOver(r.fetch.Seq)
	p.retryDelay = 0
	resumed := false
	if r.fetch.N > 0 {
		resumed = p.isolate(r, reply)
		p.leaseRenewed(r.sent)
		p.clean = p.clean && len(reply.Claims) == 0
	}
	started := p.start(r, reply.Claims, received)
	woken := p.returnUnused(r, reply, len(started))
	p.mu.Unlock()
	wakeAll(woken)
	if resumed {
		p.w.resume()
	}
	p.w.claimEnded()
	for i, a := range r.attempts {
		if a != nil {
			a.traceReport(r.sent, reply.Verdicts[i], nil)
		}
	}
	if reply.Stopping() && r.fetch.N > 0 {
		p.w.stopRequested()
	}
	for _, a := range started {
		go a.run()
	}
	p.callWorked(requests)
	p.w.logKeys(p.w.id, p.number, reply.Errors)
}

// handleError keeps or drops the outcomes of a request that failed, and returns how long
// to wait before the next one.
func (p *partition) handleError(r *request, err error) time.Duration {
	p.mu.Lock()
	p.fetchOver(r.fetch.Seq)
	p.clean = false
	kept, dropped := p.keepOrDrop(r.attempts, err)
	p.unreported = append(kept, p.unreported...)
	for _, a := range dropped {
		p.drop(a.key())
	}
	delay := p.growDelay()
	woken := p.withdrawFromSlots(r.slots) // until this partition fetches again, others can use its slots
	r.slots = 0
	p.mu.Unlock()
	wakeAll(woken)
	p.w.claimEnded()

	for _, a := range dropped {
		a.traceReport(r.sent, queue.Verdict{}, err)
	}
	p.w.counts.dropped.Add(int64(len(dropped)))
	p.callFailed(requests, "A request to Redis failed; the worker tries again", err,
		"outcomes_kept", len(kept), "outcomes_dropped", len(dropped))
	return delay
}

// keepOrDrop decides which outcomes of a failed request are sent again. Caller holds mu.
//
// If the request certainly had no effect, all outcomes are kept. If it may have had an effect, all
// are dropped: package queue has repeated the request while that was safe, and now the record or the
// lease decides. If Redis refused the request, a single outcome may be the cause. The outcomes are
// then sent again one by one, so that Redis accepts the others.
func (p *partition) keepOrDrop(attempts []*attempt, err error) (kept, dropped []*attempt) {
	switch {
	case errors.Is(err, refusal.ErrUnknown):
		return nil, attempts
	case errors.Is(err, refusal.ErrUnavailable), refusal.Permanent(err): // the cause is not in the outcomes
		return attempts, nil
	}
	for _, a := range attempts {
		if a.refusals++; a.refusals < maxRefusals {
			kept = append(kept, a)
		} else {
			dropped = append(dropped, a)
		}
	}
	p.sendSingly = max(p.sendSingly, len(kept))
	return kept, dropped
}
