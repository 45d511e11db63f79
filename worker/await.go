package worker

import (
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
)

// noSlotDelay is the interval between fetches while no slot is free.
const noSlotDelay = 100 * time.Millisecond

// await waits for tasks whenever the partition has none, and then starts fetching. It
// returns when the context of Run ends.
func (p *partition) await() {
	line := claim.Of(p.w.q).WakeLine(p.number, p.w.queues.names)
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
			if err == nil {
				p.callWorked(awaits)
			} else if ctx.Err() == nil {
				p.callFailed(awaits, "Waiting for work failed; the worker tries again", err)
			}
		} else {
			// Without a free slot this worker must not take a wake token, because another worker
			// could use it. The fetch waits for a slot.
			sleep(ctx, noSlotDelay)
		}
		p.endAwait(token)
	}
}

// startAwait reports whether to wait for a wake token, and for how long. The worker does not wait
// while all slots run handlers, nor after a reply that promised tasks without returning any. A slot
// that another partition has reserved for a fetch counts as free: if that fetch fills the slot, the
// token is passed on.
func (p *partition) startAwait() (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.emptyReplies > 0 || p.w.stopping.Load() || p.w.allBusy() {
		return 0, false
	}
	p.awaiting = true
	return p.look, true
}

// allBusy reports whether every slot runs a handler.
func (w *Worker) allBusy() bool { return w.counts.running.Load() >= int64(w.config.Concurrency) }

// endAwait makes the partition fetch. While the worker stops, the fetch only passes the token on.
func (p *partition) endAwait(token bool) {
	p.startFetching(token)
	p.mu.Lock()
	p.awaiting = false
	p.mu.Unlock()
	p.w.drainStep()
}
