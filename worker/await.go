package worker

import (
	"context"
	"time"
)

const (
	awaitFor     = time.Second             // one call of AwaitWork
	awaitTimeout = 1500 * time.Millisecond // fetch then, even if the call has not returned
	noSlotDelay  = 100 * time.Millisecond  // between fetches while no slot is free
)

// await waits for tasks whenever the partition has none, and has them fetched. It returns
// when the context of Run ends.
func (p *partition) await() {
	for ctx := p.w.fetchCtx; ; {
		select {
		case <-ctx.Done():
			return
		case <-p.idle:
		}
		if p.canUseToken() {
			p.awaitOnce(ctx)
		} else {
			// Another worker must get the token. The fetch waits for a slot.
			sleep(ctx, noSlotDelay)
			p.startFetching(false)
		}
	}
}

// canUseToken tells whether to wait for a wake token: there is a slot for its task, and
// the last reply did not promise tasks that it did not have.
func (p *partition) canUseToken() bool {
	p.mu.Lock()
	promised := p.emptyReplies > 0
	p.mu.Unlock()
	return !promised && p.w.slots.anyFree()
}

// awaitOnce waits until AwaitWork has returned. It waits no longer than awaitTimeout: on a
// connection that is half open the answer may come much later.
func (p *partition) awaitOnce(ctx context.Context) {
	select {
	case <-p.awaited: // left over from a call that took longer
	default:
	}
	p.startAwait(ctx)
	timer := time.NewTimer(awaitTimeout)
	defer timer.Stop()
	select {
	case <-p.awaited:
	case <-timer.C:
		p.startFetching(false)
	case <-ctx.Done():
	}
}

// startAwait calls AwaitWork in a goroutine, unless an earlier call is under way.
func (p *partition) startAwait(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awaiting || p.w.stopping.Load() {
		return
	}
	p.awaiting = true
	p.w.background.Go(func() {
		token, err := p.w.q.Attempts().AwaitWork(ctx, p.number, p.w.queues.names, awaitFor)
		if err != nil && ctx.Err() == nil {
			p.w.logError(p.number, "Waiting for work failed; the worker tries again", err)
			sleep(ctx, p.failed())
		}
		p.mu.Lock()
		p.awaiting = false
		p.mu.Unlock()
		p.startFetching(token)
		notify(p.awaited)
		p.w.drainStep()
	})
}
