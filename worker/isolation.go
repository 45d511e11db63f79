package worker

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Variables, so that tests need not wait.
var (
	// drainLimit is how long a worker takes no tasks so that it can run one alone. A handler that takes longer, or that has
	// ignored the end of its context, must not hold up the other slots.
	drainLimit = time.Minute
	// aloneLimit is how long such a task has the worker for itself. A task that kills its worker mostly does so at once.
	aloneLimit = 10 * time.Minute
)

// isolation begins or ends the isolation of the partition, as a reply requires: then it is the only one of the worker that gets
// slots, one, and only while all are free. Redis has a task that may have killed its workers, and must run alone
// (lua/task/suspicion.lua). Caller holds mu.
func (p *partition) isolation(r *request, reply *queue.Reply, started []*attempt) (woken []*account) {
	switch {
	case len(started) > 0 && started[0].claim.Alone:
	case r.fetch.State == queue.AskAlone:
		return p.endIsolation(r)
	case reply.Isolate && p.w.counts.stray.Load() == 0 && p.w.slots.isolate(&p.account):
		p.rejoinAfter = time.AfterFunc(drainLimit, p.rejoin)
	}
	return nil
}

// endIsolation ends the isolation if a request has asked for tasks in it. Caller holds mu.
func (p *partition) endIsolation(r *request) (woken []*account) {
	if r.fetch.State != queue.AskAlone {
		return nil
	}
	p.rejoinAfter.Stop()
	return p.w.slots.rejoin(&p.account)
}

// askState returns what the worker holds beside a request that has reserved slots. Caller holds mu.
func (p *partition) askState(reserved int) queue.AskState {
	switch only, isolated := p.w.slots.onlyHeld(&p.account, reserved); {
	case isolated:
		return queue.AskAlone
	case only:
		return queue.AskIdle
	}
	return queue.AskBusy
}

// startAlone reports whether a task that must run alone can start. It cannot if the isolation has ended since the worker asked for
// the task. Caller holds mu.
func (p *partition) startAlone() bool {
	if !p.w.slots.isolated(&p.account) || !p.rejoinAfter.Stop() {
		return false
	}
	p.rejoinAfter = time.AfterFunc(aloneLimit, p.rejoin)
	return true
}

// rejoin ends the isolation.
func (p *partition) rejoin() { wakeAll(p.w.slots.rejoin(&p.account)) }
