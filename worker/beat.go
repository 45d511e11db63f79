package worker

import (
	"context"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// farewell bounds the goodbye to each partition: the lease says it otherwise.
const farewell = 2 * time.Second

// beat keeps the worker's lease in a partition, and stops what Redis says must stop.
// The first one is before the first ask.
func (l *lane) beat() {
	w := l.w
	for first := true; w.errand.Err() == nil; {
		held, known := l.holding()
		stops, err := w.q.Attempts().Heartbeat(w.errand, l.partition, w.id, w.config.Lease, known, held)
		if err != nil {
			w.complain(l.partition, "A heartbeat failed; the worker goes on trying", err)
			w.rest(l.backOff())
			continue
		}
		l.heard(held)
		for _, s := range stops {
			l.stop(s)
		}
		if first && !w.stopping.Load() {
			l.look(false)
		}
		first = false
		l.untilNextBeat()
	}
}

func (l *lane) untilNextBeat() {
	timer := time.NewTimer(l.w.config.Beat)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.again:
	case <-l.w.errand.Done():
	}
}

// stop passes on what Redis says must stop at once.
func (w *Worker) stop(s queue.Stop) {
	if p, err := queue.PartitionOf(s.ID); err == nil && p < len(w.lanes) {
		w.lanes[p].stop(s)
	}
}

// missedStops has all lanes ask again what must stop: a message may have been lost.
func (w *Worker) missedStops() {
	for _, l := range w.lanes {
		notify(l.again)
	}
}

// goodbye gives back what the worker still holds, everywhere. Nothing of it may be
// under way any more: a later fetch would be a claim that nobody works on.
func (w *Worker) goodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	var group sync.WaitGroup
	for _, l := range w.lanes {
		group.Go(func() {
			_, known := l.holding()
			if _, err := w.q.Attempts().Heartbeat(ctx, l.partition, w.id, 0, known, nil); err != nil {
				w.log.Warn("The worker could not say goodbye: what it held is given back when its lease ends",
					"partition", l.partition, "error", err)
			}
		})
	}
	group.Wait()
}
