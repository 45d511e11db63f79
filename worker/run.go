package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Run takes and runs tasks until ctx ends or a stop of the worker is requested
// ([queue.Queue.StopWorker]). Then it waits for the handlers, reports their outcomes, and returns
// nil. A worker runs once: a second call returns an error. If the config or the defaults of a kind
// are invalid, Run returns an error and starts nothing.
//
// If Redis is unreachable, Run continues to try. It returns an error if waiting does not repair the
// cause ([refusal.Permanent], for example a wrong password or a missing right), and the defaults
// cannot be stored or the first heartbeat in a partition fails. It also returns an error when the
// client is closed ([refusal.ErrClosed]), or when the namespace has been upgraded to a version that
// this program does not work with ([refusal.ErrNewer]). After the first heartbeat, Run treats the
// loss of a password or a right as an outage, and tries again.
//
// The contexts of handlers have the values of ctx, but do not end with it, because handlers have
// Config.ShutdownTimeout to finish.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	w.warnUnserved()
	if err := w.defineKindsPatiently(ctx); err != nil {
		w.mu.Lock()
		w.ran = false // nothing was started, so Run may be called again
		w.mu.Unlock()
		return err
	}
	ctx, w.end = context.WithCancel(queue.LogTo(ctx, w.log))
	defer w.end()
	// At shutdown three contexts end one after the other: of fetches, of handlers, and of the calls
	// that report their outcomes.
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
		failed = w.drain(cancelRoot)
	case failed = <-w.failed:
		endFetching()
	}
	if failed != nil {
		w.abandon(cancelRoot)
	}
	endCalls()
	endStops()
	w.background.Wait()
	if failed == nil {
		// After an error no call can succeed, so the leases are left to expire.
		w.endLeases(context.WithoutCancel(ctx))
	}
	return failed
}

// startBackground starts the goroutines of the worker, except those of handlers. endStops ends the
// subscription to stop messages.
func (w *Worker) startBackground() (endStops func()) {
	w.about = w.description(slices.Sorted(maps.Keys(w.handlers)), w.config.Queues, w.config.Strict, w.config.Program)
	for n := range w.q.Partitions() {
		w.partitions = append(w.partitions, newPartition(w, n))
	}
	endStops = claim.Of(w.q).Stops(w.id, w.stop, w.stopsMissed)
	if !w.config.NoReaper {
		w.background.Go(func() { reaper.RunShared(w.callCtx, w.q, w.log) })
	}
	for _, p := range w.partitions {
		w.background.Go(p.heartbeats)
		w.background.Go(p.await)
	}
	return endStops
}

// prepare makes all checks that are possible before anything starts.
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
			return fmt.Errorf("worker: middleware returned a nil handler for kind %q: return one that calls next", kind)
		}
	}
	w.ran = true
	w.handlers = handlers
	w.queues = newQueueWeights(&w.config)
	w.slots = &slots{total: w.config.Concurrency, free: w.config.Concurrency, accounts: w.q.Partitions()}
	return nil
}

// check completes the config, and returns an error if it is invalid. Caller holds mu.
func (w *Worker) check() error {
	if w.config.TaskTimeout == 0 {
		fromEnv, err := TaskTimeoutFromEnv()
		if err != nil {
			return err
		}
		if fromEnv > 0 { // 0 must not be stored, because handlers of RunOne read the field without the lock
			w.config.TaskTimeout = fromEnv
		}
	}
	if err := w.config.check(); err != nil {
		return err
	}
	if len(w.registered) == 0 {
		return errors.New("worker: no handler is registered: call worker.Handle before Run")
	}
	return nil
}
