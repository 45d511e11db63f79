package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// runOneLease is longer than any test, even a test that moves the clock.
const runOneLease = 100 * 365 * 24 * time.Hour

// Ran describes an attempt of RunOne.
type Ran struct {
	Claim   queue.Claim   // the task as it was claimed
	Report  queue.Outcome // the outcome that was reported; without a Verb the task was suspended
	Verdict queue.Verdict // the reply of Redis to the report
}

// RunOne is for tests. It claims one ready task, runs its handler in the calling goroutine, reports
// the outcome, and returns. Middleware, Info, panics, verdicts, limits and stops work as they do in
// Run. Run must not have been called. If no task is ready, RunOne returns nil and no error. It
// leaves no goroutine behind.
//
// RunOne takes the task from the named queues, in that order. Without names it uses the worker's own
// queues, beginning with the greatest weight. With several partitions, it uses the first that has a
// ready task. When ctx ends, the handler's context ends with ErrShutdown.
//
// RunOne returns an error if the config is invalid, if a call to Redis fails, or if the task's kind
// has no handler here. In the last case it gives the task back, as Run does.
//
// The claim of RunOne does not expire: if the process dies, the task ends only by its own limits.
func (w *Worker) RunOne(ctx context.Context, queues ...string) (*Ran, error) {
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	if err := w.checkRunOne(); err != nil {
		return nil, err
	}
	if err := w.DefineKinds(ctx); err != nil {
		return nil, err
	}
	if len(queues) == 0 {
		queues = w.config.byWeight()
	}
	// Each call has its own worker id, so that calls share no state, and a handler can call RunOne
	// too.
	o := &runOne{w: w, id: newID(w.config.Name), callCtx: queue.LogTo(context.WithoutCancel(ctx), w.log)}
	w.mu.Lock()
	handlers := w.wrapped()
	w.mu.Unlock()
	o.kinds, o.queues = slices.Sorted(maps.Keys(handlers)), queues
	defer o.endLeases()
	held, err := o.fetch(ctx)
	if held == nil || err != nil {
		return nil, err
	}
	received := time.Now()
	handle := handlers.find(held.Kind)
	if handle == nil {
		return nil, o.giveBack(held)
	}
	return o.run(ctx, handle, held, received)
}

func (w *Worker) checkRunOne() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: RunOne was called after Run: make another worker for RunOne")
	}
	return w.check()
}

// byWeight returns the queues by descending weight and then by name, so that a test gets the same
// order each time.
func (c *Config) byWeight() []string {
	if len(c.Strict) > 0 {
		return c.Strict
	}
	names := slices.Sorted(maps.Keys(c.Queues))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(c.Queues[b], c.Queues[a]) })
	return names
}

// runOne is one call of RunOne.
type runOne struct {
	w       *Worker
	id      string
	callCtx context.Context // of the calls to Redis, which must not end with the handler
	kinds   []string        // that have handlers
	queues  []string
	leased  []int // the partitions in which the id has a lease
}

// fetch fetches a task from the partitions, one after the other. It returns nil if no task is ready.
func (o *runOne) fetch(ctx context.Context) (*queue.Claim, error) {
	fetch := claim.Ask{N: 1, Seq: 1, Lease: runOneLease}
	for _, name := range o.queues {
		fetch.Quotas = append(fetch.Quotas, claim.Quota{Queue: name, N: 1})
	}
	for n := range o.w.q.Partitions() {
		o.leased = append(o.leased, n)
		if err := o.describe(ctx, n); err != nil {
			return nil, err
		}
		reply, err := claim.Of(o.w.q).Fetch(ctx, n, o.id, fetch)
		if err != nil {
			return nil, err
		}
		o.w.logKeys(o.id, n, reply.Errors)
		if len(reply.Claims) > 0 {
			return &reply.Claims[0], nil
		}
	}
	return nil, nil
}

// describe registers the worker with its kinds and its program, so that it gets the held tasks that it can run. Workers of one
// process, such as those before and after a change in a test, are different programs.
func (o *runOne) describe(ctx context.Context, partition int) error {
	if _, err := claim.Of(o.w.q).Heartbeat(ctx, partition, o.id, runOneLease, 0, nil); err != nil {
		return err
	}
	program := o.w.config.Program
	if program == executable() {
		program = fmt.Sprintf("%s.%d", program, o.w.number)
	}
	return claim.Of(o.w.q).Describe(ctx, partition, o.id, queue.WorkerRunning, o.w.description(o.kinds, nil, o.queues, program))
}

// giveBack gives back a task whose kind has no handler here.
func (o *runOne) giveBack(held *queue.Claim) error {
	o.w.logUnknownKind(o.id, held)
	a := giveBack(newPartition(o.w, held.Partition), held, unknownKindDelay, noHandler)
	a.worker = o.id // the id that claimed the task, not the id of Run
	_, err := o.settle(a)
	return errors.Join(fmt.Errorf("worker: task %s has kind %q, and only these kinds have a handler here: %s; register one with worker.Handle",
		held.ID, held.Kind, strings.Join(o.kinds, ", ")), err)
}

// run runs the attempt. The outcome is reported in a deferred function, because the handler can end
// this goroutine (runtime.Goexit).
func (o *runOne) run(ctx context.Context, handle Handler, held *queue.Claim, received time.Time) (ran *Ran, err error) {
	root, cancelRoot := context.WithCancelCause(o.callCtx)
	defer cancelRoot(nil)
	defer context.AfterFunc(ctx, func() { cancelRoot(ErrShutdown) })()
	p := newPartition(o.w, held.Partition)
	a := newAttempt(root, p, o.id, handle, held, received)
	p.hold(a)
	o.w.counts.started.Add(1)
	o.w.counts.running.Add(1)

	endWatch := o.startWatch(a)
	defer func() {
		endWatch()
		p.mu.Lock()
		p.returned(a)
		p.mu.Unlock()
		ran = &Ran{Claim: *held}
		if a.outcome.Verb != "" {
			ran.Verdict, err = o.settle(a)
		}
		ran.Report = a.outcome
	}()
	a.runHandler()
	return nil, nil
}

// settle reports the outcome of an attempt.
func (o *runOne) settle(a *attempt) (queue.Verdict, error) {
	sent := time.Now()
	reply, err := claim.Of(o.w.q).Settle(o.callCtx, a.claim.Partition, o.id, queue.NewCall(), []queue.Outcome{a.outcome}, claim.Ask{})
	if err != nil {
		o.w.counts.dropped.Add(1)
		a.traceReport(sent, queue.Verdict{}, err)
		return queue.Verdict{}, err
	}
	o.w.logKeys(o.id, a.claim.Partition, reply.Errors)
	a.partition.mu.Lock()
	settled := a.settled(reply.Verdicts[0])
	a.partition.mu.Unlock()
	if !settled {
		return o.settle(a)
	}
	a.traceReport(sent, reply.Verdicts[0], nil)
	return reply.Verdicts[0], nil
}

// startWatch starts a goroutine that watches an attempt. end stops it, and sends the newest
// progress.
func (o *runOne) startWatch(a *attempt) (end func()) {
	ctx, cancel := context.WithCancel(o.callCtx)
	var group sync.WaitGroup
	group.Go(func() { o.watch(ctx, a) })
	return func() {
		cancel()
		group.Wait()
		if a.progress.unsent() != "" {
			o.heartbeat(a)
		}
	}
}

// watch ends the attempt's context when Redis reports that the attempt must stop.
func (o *runOne) watch(ctx context.Context, a *attempt) {
	missed := make(chan struct{}, 1) // signalled when messages may have been lost
	defer claim.Of(o.w.q).Stops(o.id, a.partition.stop, func() { notify(missed) })()
	for {
		select {
		case <-missed:
		case <-ctx.Done():
			return
		}
		for _, s := range o.heartbeat(a) {
			a.partition.stop(s)
		}
	}
}

// heartbeat sends the newest progress, and returns the attempts that must stop. It waits for the
// reply, because a heartbeat that reached Redis after endLeases would leave a lease behind.
func (o *runOne) heartbeat(a *attempt) []claim.Stop {
	held := a.heldClaim()
	stops, err := claim.Of(o.w.q).Heartbeat(o.callCtx, a.claim.Partition, o.id, runOneLease, 1, []claim.Held{held})
	if err == nil {
		a.progress.markSent(held.Progress)
	} else {
		o.w.logError(o.id, a.claim.Partition, "A heartbeat failed", err)
	}
	return stops
}

// endLeases ends the leases of this call, so that Redis gives back a task that was not reported.
func (o *runOne) endLeases() {
	ctx, cancel := context.WithTimeout(o.callCtx, endLeaseTimeout)
	defer cancel()
	for _, n := range o.leased {
		if _, err := claim.Of(o.w.q).Heartbeat(ctx, n, o.id, 0, 1, nil); err != nil {
			o.w.logError(o.id, n, "RunOne could not end its lease", err)
		}
	}
}
