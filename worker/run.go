package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/reaper"
)

// Run works until ctx ends, or until somebody asks the worker to stop (queue.StopWorker); then it
// drains, and returns nil. A worker runs once. It returns an error if the config or the defaults of a kind are wrong; then nothing was started.
//
// It outlives any outage of Redis. It returns an error if its first heartbeat in a partition fails for a reason that
// waiting does not mend ([refusal.Permanent]: a password, a right), and whenever the client is
// closed ([refusal.ErrClosed]). Once it has worked, it takes a right or a password that it loses for an outage.
//
// The contexts of handlers have the values of ctx, but do not end with it: handlers have
// Config.ShutdownTimeout to finish.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	if err := w.DefineKinds(ctx); err != nil {
		w.mu.Lock()
		w.ran = false // nothing was started: Run may be called again
		w.mu.Unlock()
		return err
	}
	ctx, w.end = context.WithCancel(ctx)
	defer w.end()
	root, cancelRoot := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRoot(ErrShutdown)
	callCtx, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer endCalls()
	fetchCtx, endFetching := context.WithCancel(ctx)
	defer endFetching()
	w.root, w.fetchCtx, w.callCtx = root, fetchCtx, callCtx

	endStops := w.startBackground()
	var failed error
	select {
	case <-ctx.Done():
		w.drain(cancelRoot)
	case failed = <-w.failed:
		endFetching()
		w.abandon(cancelRoot)
	}
	endCalls()
	endStops()
	w.background.Wait()
	if failed == nil {
		w.endLeases(context.WithoutCancel(ctx))
	}
	return failed
}

// startBackground starts the worker's own goroutines. The function that it returns ends the messages
// about attempts that must stop.
func (w *Worker) startBackground() (endStops func()) {
	for n := range w.q.Partitions() {
		w.partitions = append(w.partitions, newPartition(w, n))
	}
	endStops = w.q.Attempts().Stops(w.id, w.stop, w.stopsMissed)
	if !w.config.NoReaper {
		w.background.Go(func() { reaper.RunShared(w.callCtx, w.q, w.log) })
	}
	for _, p := range w.partitions {
		w.background.Go(p.heartbeats)
		w.background.Go(p.await)
	}
	return endStops
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
	handlers := w.wrapped()
	for kind, handle := range handlers {
		if handle == nil {
			return fmt.Errorf("worker: the middleware makes the handler of kind %q nil: return one that calls next", kind)
		}
	}
	w.ran = true
	w.handlers = handlers
	w.queues = newQueueWeights(&w.config)
	w.slots = &slots{total: w.config.Concurrency, free: w.config.Concurrency, accounts: w.q.Partitions()}
	return nil
}

// check completes the config and says what is wrong with it. Caller holds mu.
func (w *Worker) check() error {
	if w.config.TaskTimeout == 0 {
		fromEnv, err := TaskTimeoutFromEnv()
		if err != nil {
			return err
		}
		if fromEnv > 0 { // 0 is not written: handlers of RunOne read the field without the lock
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
