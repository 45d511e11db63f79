package reaper

import (
	"context"
	"math/rand/v2"
	"time"
)

// patience bounds one sweep. To give one up is harmless: it has its whole effect or
// none, and the next one finds what is left.
const patience = time.Second

// watch is the life of a reaper in one partition.
func (r *Reaper) watch(ctx context.Context, partition int) {
	rung := make(chan struct{}, 1)
	end := Alarms(r.of, partition, func() {
		select {
		case rung <- struct{}{}:
		default: // one ring is as good as many
		}
	})
	defer end()

	trouble := &trouble{logger: r.config.Logger, partition: partition}
	var idle int // sweeps in a row that could do nothing of what is due
	for ctx.Err() == nil {
		// Whatever rang before the sweep is sent, the sweep will see.
		silence(rung)
		swept, err := r.sweep(ctx, partition)
		if err != nil {
			if ctx.Err() == nil {
				trouble.report(err.Error())
				rest(ctx, trouble.backOff(), nil)
			}
			continue
		}
		trouble.over()
		for _, e := range swept.Errors {
			trouble.report(e)
		}
		r.config.Observe(partition, swept)

		switch {
		case swept.Wait <= 0 && (len(swept.Errors) == 0 || progress(swept)):
			idle = 0
		case swept.Wait <= 0:
			// What is due cannot be worked with. That must not make the reaper spin.
			idle = min(idle+1, 7)
			rest(ctx, time.Millisecond<<idle, nil)
		case swept.Turn:
			idle = 0
			rest(ctx, min(swept.Wait, r.config.Fallback), rung)
		default:
			// Another reaper is precise. Jitter keeps the others from looking all
			// at once, and only ever shortens the rest: the fall-back is a promise.
			idle = 0
			rest(ctx, r.config.Fallback-rand.N(r.config.Fallback/4+1), nil)
		}
	}
}

func (r *Reaper) sweep(ctx context.Context, partition int) (Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return Sweep(ctx, r.of, partition, r.name, r.config.Batch, r.config.Fallback)
}

func progress(s Swept) bool {
	return s.TimedOut+s.Started+s.GivenBack+s.Drained+s.Removed+s.Broken > 0
}

// silence takes back a ring that is no news any more.
func silence(rung <-chan struct{}) {
	select {
	case <-rung:
	default:
	}
}

// rest returns after d, at a ring, or when ctx ends.
func rest(ctx context.Context, d time.Duration, rung <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-rung:
	case <-ctx.Done():
	}
}
