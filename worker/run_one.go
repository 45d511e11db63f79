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

	"github.com/curfew-dev/curfew/queue"
)

// runOneLease outlasts every test, whatever its clock does.
const runOneLease = 100 * 365 * 24 * time.Hour

// Ran is an attempt that RunOne made.
type Ran struct {
	Claim   queue.Claim   // the task as it was claimed
	Report  queue.Outcome // the outcome that was reported; no Verb: the task was suspended
	Verdict queue.Verdict // how Redis answered the report
}

// RunOne is for tests. It claims one ready task, runs its handler in the calling
// goroutine, reports the outcome, and returns. Middleware, Info, panics, verdicts, limits
// and stops are as under Run, which must not be called. If no task is ready it returns
// nil. It leaves no goroutine behind.
//
// It takes the task from the queues named, in that order. Without names it takes the
// worker's own, the one of the greatest weight first. Of several partitions it takes the
// first that has a ready task. When ctx ends, the handler's context ends with
// ErrShutdown.
//
// It returns an error if the config is wrong, if Redis did not answer, or if the task's
// kind has no handler here. In the last case the task is given back, as under Run.
//
// Its lease does not run out: if the process dies, the task ends by its own limits only.
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
	// Each call has an id of its own. So calls share no state, and a handler may itself
	// call RunOne.
	o := &runOne{w: w, id: newID(w.config.Name), callCtx: context.WithoutCancel(ctx)}
	defer o.endLeases()
	claim, err := o.fetch(ctx, queues)
	if claim == nil || err != nil {
		return nil, err
	}
	received := time.Now()
	w.mu.Lock()
	handle, kinds := w.wrapped()[claim.Kind], slices.Sorted(maps.Keys(w.registered))
	w.mu.Unlock()
	if handle == nil {
		return nil, o.giveBack(claim, kinds)
	}
	return o.run(ctx, handle, claim, received)
}

func (w *Worker) checkRunOne() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: RunOne is for a worker that does not Run: make another one")
	}
	return w.check()
}

// byWeight returns the queues in an order that is always the same, as tests need it.
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
	callCtx context.Context // of the calls to Redis: it outlives the handler
	asked   []int           // the partitions in which the id has a lease
}

// fetch asks the partitions one after the other for a task.
func (o *runOne) fetch(ctx context.Context, queues []string) (*queue.Claim, error) {
	fetch := queue.Ask{N: 1, Seq: 1, Lease: runOneLease}
	for _, name := range queues {
		fetch.Quotas = append(fetch.Quotas, queue.Quota{Queue: name, N: 1})
	}
	for n := range o.w.q.Partitions() {
		o.asked = append(o.asked, n)
		reply, err := o.w.q.Attempts().Fetch(ctx, n, o.id, fetch)
		if err != nil {
			return nil, err
		}
		o.w.logKeys(n, reply.Errors)
		if len(reply.Claims) > 0 {
			return &reply.Claims[0], nil
		}
	}
	return nil, nil
}

// giveBack gives back a task whose kind has no handler here.
func (o *runOne) giveBack(claim *queue.Claim, kinds []string) error {
	o.w.logUnknownKind(claim)
	_, err := o.settle(giveBack(newPartition(o.w, claim.Partition), claim, unknownKindDelay))
	return errors.Join(fmt.Errorf("worker: task %s is of kind %q, which has no handler here, only %s: register one with worker.Handle",
		claim.ID, claim.Kind, strings.Join(kinds, ", ")), err)
}

// run makes the attempt. Its outcome is reported even if the handler ends this goroutine.
func (o *runOne) run(ctx context.Context, handle Handler, claim *queue.Claim, received time.Time) (ran *Ran, err error) {
	root, cancelRoot := context.WithCancelCause(o.callCtx)
	defer cancelRoot(nil)
	defer context.AfterFunc(ctx, func() { cancelRoot(ErrShutdown) })()
	a := newAttempt(root, newPartition(o.w, claim.Partition), o.id, handle, claim, received)
	o.w.counts.started.Add(1)
	o.w.counts.running.Add(1)

	endWatch := o.startWatch(a)
	defer func() {
		endWatch()
		o.w.counts.running.Add(-1)
		ran = &Ran{Claim: *claim, Report: a.outcome}
		if a.outcome.Verb != "" {
			ran.Verdict, err = o.settle(a)
		}
	}()
	a.runHandler()
	return nil, nil
}

// settle reports the outcome of an attempt.
func (o *runOne) settle(a *attempt) (queue.Verdict, error) {
	reply, err := o.w.q.Attempts().Settle(o.callCtx, a.claim.Partition, o.id, queue.NewCall(), []queue.Outcome{a.outcome}, queue.Ask{})
	if err != nil {
		o.w.counts.dropped.Add(1)
		return queue.Verdict{}, err
	}
	o.w.logKeys(a.claim.Partition, reply.Errors)
	a.settled(reply.Verdicts[0])
	return reply.Verdicts[0], nil
}

// startWatch starts to watch an attempt. The function that it returns ends that, and
// sends the newest progress.
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

// watch ends the attempt's context when Redis says that it must stop.
func (o *runOne) watch(ctx context.Context, a *attempt) {
	stop := func(s queue.Stop) {
		if (claimKey{s.ID, s.Epoch}) == a.key() && a.base.Err() == nil {
			a.stop(s.Reason)
		}
	}
	missed := make(chan struct{}, 1) // signalled when messages may have been lost
	defer o.w.q.Attempts().Stops(o.id, stop, func() { notify(missed) })()
	for {
		select {
		case <-missed:
		case <-ctx.Done():
			return
		}
		for _, s := range o.heartbeat(a) {
			stop(s)
		}
	}
}

// heartbeat sends the newest progress, and returns whether the attempt must stop. It waits for
// the answer: a heartbeat that reached Redis after endLeases would leave a lease behind.
func (o *runOne) heartbeat(a *attempt) []queue.Stop {
	held := a.heldClaim()
	stops, err := o.w.q.Attempts().Heartbeat(o.callCtx, a.claim.Partition, o.id, runOneLease, 1, []queue.Held{held})
	if err == nil {
		a.progress.markSent(held.Progress)
	} else {
		o.w.logError(a.claim.Partition, "A heartbeat failed", err)
	}
	return stops
}

// endLeases ends the leases of this call. A task that was not reported is given back.
func (o *runOne) endLeases() {
	ctx, cancel := context.WithTimeout(o.callCtx, endLeaseTimeout)
	defer cancel()
	for _, n := range o.asked {
		if _, err := o.w.q.Attempts().Heartbeat(ctx, n, o.id, 0, 1, nil); err != nil {
			o.w.logError(n, "RunOne could not end its lease", err)
		}
	}
}
