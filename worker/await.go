package worker

import "time"

// noSlotDelay is how long to wait between fetches while no slot is free.
const noSlotDelay = 100 * time.Millisecond

// await waits for tasks whenever the partition has none, and has them fetched. It returns
// when the context of Run ends.
func (p *partition) await() {
	line := p.w.q.Attempts().WakeLine(p.number, p.w.queues.names)
	defer line.Close()
	for ctx := p.w.fetchCtx; ; {
		select {
		case <-ctx.Done():
			return
		case <-p.idle:
		}
		token := false
		if d, ok := p.startAwait(); ok {
			var err error
			token, err = line.Await(ctx, d)
			if err != nil && ctx.Err() == nil {
				p.w.callFailed(p.number, "Waiting for work failed; the worker tries again", err)
			}
		} else {
			// Another worker must get the token. The fetch waits for a slot.
			sleep(ctx, noSlotDelay)
		}
		p.endAwait(token)
	}
}

// startAwait tells whether to wait for a wake token, and for how long: not every slot has a
// handler, and the last reply did not promise tasks that it did not have. A slot that another
// partition fetches for counts: if that fetch fills it, the token is passed on.
func (p *partition) startAwait() (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.emptyReplies > 0 || p.w.stopping.Load() || p.w.allBusy() {
		return 0, false
	}
	p.awaiting = true
	return p.look, true
}

// allBusy tells whether every slot has a handler.
func (w *Worker) allBusy() bool { return w.counts.running.Load() >= int64(w.config.Concurrency) }

// endAwait has the partition fetch, or pass the token on if the worker stops.
func (p *partition) endAwait(token bool) {
	p.startFetching(token)
	p.mu.Lock()
	p.awaiting = false
	p.mu.Unlock()
	p.w.drainStep()
}
