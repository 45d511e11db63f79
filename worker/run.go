package worker

import (
	"context"
	"errors"

	"github.com/curfew-dev/curfew/reaper"
)

// Run works until ctx ends, drains, and returns nil. A worker runs once. An error
// says what is wrong with its config or the defaults of its kinds, and that nothing was
// started.
//
// Handlers' contexts carry the values of ctx, but do not end with it: they have
// Config.ShutdownTimeout to finish.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.prepare(); err != nil {
		return err
	}
	if err := w.DefineKinds(ctx); err != nil {
		w.mu.Lock()
		w.ran = false // nothing was started: Run may be tried again
		w.mu.Unlock()
		return err
	}
	root, cancelRoot := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRoot(ErrShutdown)
	errand, endErrands := context.WithCancel(context.WithoutCancel(ctx))
	defer endErrands()
	w.root, w.wanting, w.errand = root, ctx, errand
	for p := range w.q.Partitions() {
		w.lanes = append(w.lanes, newLane(w, p))
	}

	endStops := w.q.Stops(w.id, w.stop, w.missedStops)
	if !w.config.NoReaper {
		r := reaper.New(w.q, reaper.Config{Logger: w.log})
		w.errands.Go(func() { r.Run(errand) })
	}
	for _, l := range w.lanes {
		w.errands.Go(l.beat)
		w.errands.Go(l.await)
	}
	<-ctx.Done()

	w.drain(cancelRoot)
	endErrands()
	endStops()
	w.errands.Wait()
	w.goodbye(context.WithoutCancel(ctx))
	return nil
}

// prepare checks everything that can be checked before anything starts.
func (w *Worker) prepare() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: Run was called before: make a new worker")
	}
	if err := w.check(); err != nil {
		return err
	}
	w.ran = true
	w.handlers = w.wrapped()
	w.menu = newMenu(&w.config)
	w.slots = &slots{total: w.config.Concurrency, free: w.config.Concurrency, accounts: w.q.Partitions()}
	return nil
}

// check completes the config and says what cannot work. Caller holds mu.
func (w *Worker) check() error {
	if w.config.TaskTimeout == 0 {
		fromEnv, err := TaskTimeoutFromEnv()
		if err != nil {
			return err
		}
		if fromEnv > 0 { // who reads it, does so without a lock
			w.config.TaskTimeout = fromEnv
		}
	}
	if err := w.config.check(); err != nil {
		return err
	}
	if len(w.registered) == 0 {
		return errors.New("worker: there is no handler: register one before Run")
	}
	return nil
}
