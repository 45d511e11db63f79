package worker

import (
	"context"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// endLeaseTimeout bounds endLeases. Leases that it could not end expire later.
const endLeaseTimeout = 2 * time.Second

// heartbeats renews the worker's lease in the partition, and stops the attempts that Redis reports.
// The first heartbeat comes before the first fetch.
func (p *partition) heartbeats() {
	w := p.w
	for first := true; w.callCtx.Err() == nil; {
		if err := p.heartbeat(); err != nil {
			if first && refusal.Permanent(err) && w.callCtx.Err() == nil {
				w.fail(err)
				return
			}
			p.callFailed(heartbeats, "A heartbeat failed; the worker tries again", err)
			sleep(w.callCtx, p.failed())
			continue
		}
		p.callWorked(heartbeats)
		if first && !w.stopping.Load() {
			p.startFetching(false)
		}
		first = false
		p.describe()
		p.awaitNextBeat()
	}
}

// maySkip reports whether the next heartbeat is unnecessary: the worker holds no claims here, a
// fetch has renewed the lease for long enough, and Redis has the worker's description.
func (p *partition) maySkip() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.w.config
	return p.clean && len(p.held) == 0 && p.described == p.w.state() && time.Since(p.renewed)+c.Beat <= c.Lease*3/4
}

func (p *partition) heartbeat() error {
	w := p.w
	held, seq := p.claims()
	sent := time.Now()
	stops, err := claim.Of(w.q).Heartbeat(w.callCtx, p.number, w.id, w.config.Lease, seq, held)
	if err != nil {
		return err
	}
	p.progressSent(held)
	p.beatAnswered(sent, seq, len(held))
	for _, s := range stops {
		w.stop(s)
	}
	return nil
}

// beatAnswered records that Redis has renewed the lease. Of the fetches up to seq, Redis now holds
// only the claims that the heartbeat named. If the worker has dropped a named claim since, the next
// heartbeat must give it back, so the partition is not clean.
func (p *partition) beatAnswered(sent time.Time, seq int64, claims int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaseRenewed(sent)
	p.clean = claims == 0 && len(p.held) == 0 && len(p.openFetches) == 0 && seq == p.seq
}

// leaseRenewed records that a request has renewed the lease. If the lease may have expired before,
// the description is sent again, because Redis may have removed it with the lease. Caller holds mu.
func (p *partition) leaseRenewed(sent time.Time) {
	if time.Since(p.renewed) > p.w.config.Lease {
		p.described = ""
	}
	p.renewed = sent
}

func (p *partition) awaitNextBeat() {
	timer := time.NewTimer(p.w.config.Beat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if !p.maySkip() {
				return
			}
			timer.Reset(p.w.config.Beat)
		case <-p.beatNow:
			return
		case <-p.w.callCtx.Done():
			return
		}
	}
}

// stop stops the attempt that an order of Redis names, or the worker itself.
func (w *Worker) stop(s claim.Stop) {
	if s.OfWorker() {
		w.stopRequested()
		return
	}
	if n, err := queue.PartitionOf(s.ID); err == nil && n < len(w.partitions) {
		w.partitions[n].stop(s)
	}
}

// stopsMissed is called when stop messages may have been lost. It sends heartbeats, whose replies
// name the attempts that must stop.
func (w *Worker) stopsMissed() {
	for _, p := range w.partitions {
		notify(p.beatNow)
	}
}

// endLeases ends the worker's lease in every partition, so that Redis gives back its remaining
// claims. No request may be under way when it is called, because a later fetch would claim tasks
// that no worker runs.
func (w *Worker) endLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endLeaseTimeout)
	defer cancel()
	var group sync.WaitGroup
	for _, p := range w.partitions {
		group.Go(func() {
			_, seq := p.claims()
			if _, err := claim.Of(w.q).Heartbeat(ctx, p.number, w.id, 0, seq, nil); err != nil {
				w.log.Warn("The worker could not end its lease: its claims are given back when the lease expires",
					"worker", w.id, "partition", p.number, "error", err)
			}
		})
	}
	group.Wait()
}
