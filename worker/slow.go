package worker

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
)

// slotTimeout is the time for which a request keeps its slots while its partition does not answer.
// After that other partitions get the slots.
const slotTimeout = 1500 * time.Millisecond

// watchSlots takes back the slots of a request if its partition does not answer, until stop is
// called. A request can also be slow because it is large. So watchSlots makes small calls to the
// partition, and the request keeps its slots while these are answered. Without slots its tasks would
// be given back, and sent once more.
func (p *partition) watchSlots(r *request) (stop func()) {
	ctx, cancel := context.WithCancel(p.w.callCtx)
	var check func()
	check = func() {
		try, endTry := context.WithTimeout(ctx, slotTimeout/2)
		defer endTry()
		err := claim.Of(p.w.q).Answers(try, p.number)
		switch {
		case ctx.Err() != nil: // the reply has arrived
		case err == nil:
			time.AfterFunc(slotTimeout/2, check)
		default:
			p.takeBackSlots(r)
		}
	}
	first := time.AfterFunc(slotTimeout/2, check)
	return func() {
		cancel()
		first.Stop()
	}
}

// takeBackSlots gives the slots of a request to the other partitions. If the reply later contains
// tasks, they run in the slots that are free by then; the other tasks are given back.
func (p *partition) takeBackSlots(r *request) {
	var woken []*account
	p.mu.Lock()
	if r.slots > 0 { // otherwise the reply has just arrived
		woken = p.withdrawFromSlots(r.slots)
		r.slots = 0
	}
	p.mu.Unlock()
	wakeAll(woken)
}
