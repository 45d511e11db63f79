package reaper

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// patience bounds one sweep. A sweep that is given up has its whole effect or none, and the next
// sweep does the rest. Only tests change it.
var patience = time.Second

// watch sweeps one partition until ctx ends, and then returns nil. If no later sweep can succeed,
// watch returns the error.
func (r *Reaper) watch(ctx context.Context, partition int) error {
	alarms := &alarms{ns: r.ns, partition: partition, rung: make(chan struct{}, 1)}
	defer alarms.end()

	trouble := &trouble{logger: r.config.Logger, partition: partition}
	batch := r.config.Batch
	var idle int       // consecutive sweeps that could process no due task
	succeeded := false // a sweep has succeeded
	for ctx.Err() == nil {
		// An alarm from before the sweep needs no further sweep, because this sweep finds the due
		// task.
		alarms.silence()
		swept, err := r.sweep(ctx, partition, batch)
		if err != nil && ctx.Err() == nil {
			if errors.Is(err, refusal.ErrClosed) || errors.Is(err, refusal.ErrNewer) || !succeeded && refusal.Permanent(err) {
				return err
			}
			trouble.report(err.Error())
			rest(ctx, trouble.backOff(), nil)
		}
		if err != nil {
			continue
		}
		succeeded, trouble.pause = true, 0
		for _, e := range swept.Errors {
			trouble.report(e)
		}
		if len(swept.Errors) == 0 {
			trouble.end()
		}
		alarms.hear(swept.Turn)
		r.config.Observe(partition, swept)
		batch = r.config.Batch

		switch {
		case swept.Wait <= 0 && (len(swept.Errors) == 0 || progress(swept)):
			idle, batch = 0, r.crowd
		case swept.Wait <= 0:
			// The due tasks cannot be processed. A pause is needed, because the reaper would
			// otherwise sweep without end.
			idle = min(idle+1, 7)
			rest(ctx, time.Millisecond<<idle, nil)
		case swept.Turn:
			idle = 0
			rest(ctx, min(swept.Wait, r.config.Fallback), alarms.rung)
		default:
			// Another reaper has the turn. Jitter spreads the sweeps of reapers that were started
			// together.
			idle = 0
			rest(ctx, swept.Wait-rand.N(swept.Wait/4+1), nil)
		}
	}
	return nil
}

func (r *Reaper) sweep(ctx context.Context, partition, batch int) (Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return Sweep(ctx, r.ns, partition, r.name, batch, r.config.Fallback)
}

func progress(s Swept) bool {
	return s.TimedOut+s.Started+s.Fired+s.Warned+s.GivenBack+s.WaitsTimedOut+s.Drained+s.Removed+s.Broken > 0
}

// rest returns after d, when rung receives, or when ctx ends.
func rest(ctx context.Context, d time.Duration, rung <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-rung:
	case <-ctx.Done():
	}
}

// alarms receives the alarms of one partition. Only the reaper with the turn subscribes to them,
// because Redis would otherwise send each alarm to every reaper.
type alarms struct {
	ns        Namespace
	partition int
	rung      chan struct{} // holds one alarm, because several alarms need only one sweep
	stop      func()        // unsubscribes; nil while not subscribed
}

// hear subscribes if on, and otherwise unsubscribes. rung receives once after each subscription,
// also after a broken connection, because an alarm may have been lost.
func (a *alarms) hear(on bool) {
	switch {
	case on && a.stop == nil:
		a.stop = Alarms(a.ns, a.partition, func() {
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

// silence discards an earlier alarm.
func (a *alarms) silence() {
	select {
	case <-a.rung:
	default:
	}
}
