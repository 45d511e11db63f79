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

// onceLease outlasts every test, whatever its clock does.
const onceLease = 100 * 365 * 24 * time.Hour

// Ran is an attempt that RunOne made.
type Ran struct {
	Claim   queue.Claim   // the task as it was handed out
	Report  queue.Outcome // what was reported of the attempt; no Verb: it was suspended
	Verdict queue.Verdict // what Redis made of the report
}

// RunOne is for tests: it takes one ready task, runs its handler in the calling
// goroutine, and returns when it has reported how that ended. Middleware, Info, panics,
// verdicts, limits and stops are as under Run, which it does not need. It returns nil
// if no task was ready, and leaves no goroutine behind.
//
// It takes from the queues named, in that order, or else from the worker's own, the
// one of the greatest weight first; of several partitions, from the first that has a
// ready task. When ctx ends, the handler's context ends with ErrShutdown.
//
// An error says that the config cannot work, that Redis did not answer, or that the
// task's kind has no handler here; the task is then given back, as Run would.
//
// Its lease never ends: if the process dies the task waits for its own limits.
func (w *Worker) RunOne(ctx context.Context, queues ...string) (*Ran, error) {
	if err := w.mayRunOne(); err != nil {
		return nil, err
	}
	if err := w.DefineKinds(ctx); err != nil {
		return nil, err
	}
	if len(queues) == 0 {
		queues = w.config.byWeight()
	}
	// A name of its own for each call: so there is no state to keep between calls, and
	// a handler may itself call RunOne.
	o := &once{w: w, id: newID(w.config.Name), errand: context.WithoutCancel(ctx)}
	defer o.goodbye()
	claim, err := o.take(ctx, queues)
	if claim == nil || err != nil {
		return nil, err
	}
	received := time.Now()
	w.mu.Lock()
	handle, kinds := w.wrapped()[claim.Kind], slices.Sorted(maps.Keys(w.registered))
	w.mu.Unlock()
	if handle == nil {
		return nil, o.refuse(claim, kinds)
	}
	return o.run(ctx, handle, claim, received)
}

func (w *Worker) mayRunOne() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: RunOne is for a worker that does not Run: make another one")
	}
	return w.check()
}

// byWeight are the queues in an order that does not change: a test wants no dice.
func (c *Config) byWeight() []string {
	if len(c.Strict) > 0 {
		return c.Strict
	}
	names := slices.Sorted(maps.Keys(c.Queues))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(c.Queues[b], c.Queues[a]) })
	return names
}

// once is one call of RunOne.
type once struct {
	w      *Worker
	id     string
	errand context.Context // of the calls to Redis: it outlives the handler
	asked  []int           // partitions that know the id
}

// take asks the partitions in turn for a task.
func (o *once) take(ctx context.Context, queues []string) (*queue.Claim, error) {
	ask := queue.Ask{N: 1, Seq: 1, Lease: onceLease}
	for _, name := range queues {
		ask.Quotas = append(ask.Quotas, queue.Quota{Queue: name, N: 1})
	}
	for p := range o.w.q.Partitions() {
		o.asked = append(o.asked, p)
		trip, err := o.w.q.Fetch(ctx, p, o.id, ask)
		if err != nil {
			return nil, err
		}
		o.w.reportKeys(p, trip.Errors)
		if len(trip.Claims) > 0 {
			return &trip.Claims[0], nil
		}
	}
	return nil, nil
}

// run makes the attempt. Its end is reported even if the handler ends this goroutine.
func (o *once) run(ctx context.Context, handle Handler, claim *queue.Claim, received time.Time) (ran *Ran, err error) {
	root, cancelRoot := context.WithCancelCause(o.errand)
	defer cancelRoot(nil)
	defer context.AfterFunc(ctx, func() { cancelRoot(ErrShutdown) })()
	a := newAttempt(root, newLane(o.w, claim.Partition), o.id, handle, claim, received)
	o.w.counts.started.Add(1)
	o.w.counts.running.Add(1)

	watching, endWatch := context.WithCancel(o.errand)
	var group sync.WaitGroup
	group.Go(func() { o.watch(watching, a) })
	defer func() {
		endWatch()
		group.Wait()
		if a.progress.news() != "" {
			o.beat(a)
		}
		o.w.counts.running.Add(-1)
		ran = &Ran{Claim: *claim, Report: a.outcome}
		if a.outcome.Verb != "" {
			ran.Verdict, err = o.settle(a)
		}
	}()
	a.call()
	return nil, nil
}

// refuse gives back a task whose kind has no handler here.
func (o *once) refuse(claim *queue.Claim, kinds []string) error {
	o.w.warnUnknown(claim)
	_, err := o.settle(back(newLane(o.w, claim.Partition), claim, unknownRest))
	return errors.Join(fmt.Errorf("worker: task %s is of kind %q, which has no handler here, only %s: register one with worker.Handle",
		claim.ID, claim.Kind, strings.Join(kinds, ", ")), err)
}

// settle reports an attempt.
func (o *once) settle(a *attempt) (queue.Verdict, error) {
	trip, err := o.w.q.Settle(o.errand, a.claim.Partition, o.id, queue.NewCall(), []queue.Outcome{a.outcome}, queue.Ask{})
	if err != nil {
		o.w.counts.dropped.Add(1)
		return queue.Verdict{}, err
	}
	o.w.reportKeys(a.claim.Partition, trip.Errors)
	a.lane.count(a, trip.Verdicts[0])
	return trip.Verdicts[0], nil
}

// watch ends the attempt's context when Redis says that it must stop.
func (o *once) watch(ctx context.Context, a *attempt) {
	stop := func(s queue.Stop) {
		if (hold{s.ID, s.Epoch}) == a.held() && a.base.Err() == nil {
			o.w.counts.stopped.Add(1)
			a.cancel(stopCause(s.Reason))
		}
	}
	again := make(chan struct{}, 1)
	defer o.w.q.Stops(o.id, stop, func() { notify(again) })()
	for {
		select {
		case <-again: // messages may have been missed before now
		case <-ctx.Done():
			return
		}
		for _, s := range o.beat(a) {
			stop(s)
		}
	}
}

// beat says what is new of the attempt's progress, and asks whether it must stop. It is
// never given up: it could arrive after the goodbye, and its lease would stay for ever.
func (o *once) beat(a *attempt) []queue.Stop {
	says := a.saying()
	stops, err := o.w.q.Heartbeat(o.errand, a.claim.Partition, o.id, onceLease, 1, []queue.Held{says})
	if err == nil {
		a.progress.heard(says.Progress)
	} else {
		o.w.complain(a.claim.Partition, "A heartbeat failed", err)
	}
	return stops
}

// goodbye removes the traces of this call. What could not be reported is given back.
func (o *once) goodbye() {
	ctx, cancel := context.WithTimeout(o.errand, farewell)
	defer cancel()
	for _, p := range o.asked {
		if _, err := o.w.q.Heartbeat(ctx, p, o.id, 0, 1, nil); err != nil {
			o.w.complain(p, "RunOne could not say goodbye", err)
		}
	}
}
