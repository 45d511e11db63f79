package reaper

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// patience bounds one sweep. To give one up is harmless: it has its whole effect or
// none, and the next one finds what is left.
const patience = time.Second

// watch is the life of a reaper in one partition. It returns nil when ctx ends, and the error of
// a sweep after which no other can succeed.
func (r *Reaper) watch(ctx context.Context, partition int) error {
	alarms := &alarms{of: r.of, partition: partition, rung: make(chan struct{}, 1)}
	defer alarms.end()

	trouble := &trouble{logger: r.config.Logger, partition: partition}
	batch := r.config.Batch
	var idle int    // sweeps in a row that could do nothing of what is due
	worked := false // a sweep has succeeded
	for ctx.Err() == nil {
		// Whatever rang before the sweep is sent, the sweep will see.
		alarms.silence()
		swept, err := r.sweep(ctx, partition, batch)
		if err != nil && ctx.Err() == nil {
			if errors.Is(err, refusal.ErrClosed) || !worked && refusal.Permanent(err) {
				return err
			}
			trouble.report(err.Error())
			rest(ctx, trouble.backOff(), nil)
		}
		if err != nil {
			continue
		}
		worked = true
		trouble.over()
		for _, e := range swept.Errors {
			trouble.report(e)
		}
		alarms.hear(swept.Turn)
		r.config.Observe(partition, swept)
		batch = r.config.Batch

		switch {
		case swept.Wait <= 0 && (len(swept.Errors) == 0 || progress(swept)):
			idle, batch = 0, r.crowd
		case swept.Wait <= 0:
			// What is due cannot be worked with. That must not make the reaper spin.
			idle = min(idle+1, 7)
			rest(ctx, time.Millisecond<<idle, nil)
		case swept.Turn:
			idle = 0
			rest(ctx, min(swept.Wait, r.config.Fallback), alarms.rung)
		default:
			// Another reaper is precise. Jitter keeps reapers that were started together
			// from looking all at once.
			idle = 0
			rest(ctx, swept.Wait-rand.N(swept.Wait/4+1), nil)
		}
	}
	return nil
}

func (r *Reaper) sweep(ctx context.Context, partition, batch int) (Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return Sweep(ctx, r.of, partition, r.name, batch, r.config.Fallback)
}

func progress(s Swept) bool {
	return s.TimedOut+s.Started+s.Fired+s.Warned+s.GivenBack+s.WaitsTimedOut+s.Drained+s.Removed+s.Broken > 0
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

// alarms receives the alarms of one partition. Only the reaper with the turn subscribes to them:
// otherwise Redis would send each alarm to every reaper.
type alarms struct {
	of        Namespace
	partition int
	rung      chan struct{} // one ring is as good as many
	stop      func()        // nil while they are not heard
}

// hear subscribes or unsubscribes. After it has subscribed, and after a broken connection,
// it rings once, since an alarm may have been missed.
func (a *alarms) hear(on bool) {
	switch {
	case on && a.stop == nil:
		a.stop = Alarms(a.of, a.partition, func() {
			select {
			case a.rung <- struct{}{}:
			default:
			}
		})
	case !on:
		a.end()
	}
}

// end unsubscribes.
func (a *alarms) end() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// silence discards a ring that came before now.
func (a *alarms) silence() {
	select {
	case <-a.rung:
	default:
	}
}
