package agentwait

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func awaitables[T any](futures []*Future[T]) []Awaitable {
	members := make([]Awaitable, len(futures))
	for i, f := range futures {
		members[i] = f
	}
	return members
}

func newAsk[T any](on Waiter, mode queue.Mode, need int, futures []*Future[T]) *ask {
	a, policy := waiterOf(on)
	return &ask{agent: a, policy: policy, mode: mode, need: need, members: awaitables(futures)}
}

// JoinAll waits for all of the tasks, and returns their results in the order given. If
// one of them has not completed it returns the error of the first that had not, in the
// order they ended: when the last has ended, at once for one that had failed before the
// wait, and with Wait.FailFast as soon as one fails. No tasks are no wait. Where it goes on
// without a task (Wait.Proceed, ContinueOn, SkipCancelled) the place of that one has the
// zero value: Value, or JoinAllSettled, tells it from a result.
func JoinAll[T any](on Waiter, futures ...*Future[T]) ([]T, error) {
	k := newAsk(on, queue.WaitAll, 0, futures)
	if len(futures) == 0 {
		_, err := k.wait() // what cannot be meant is refused for none as for many
		return []T{}, err
	}
	r, err := join[T](k)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(futures))
	for i := range futures {
		values[i] = outcomeOf[T](r, i).Value
	}
	return values, nil
}

// join waits for all, and returns the error of the first that failed the wait.
func join[T any](k *ask) (*result, error) {
	if k.policy.FailFast {
		k.mode = queue.WaitFailFast
	}
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	if err := outOfTime(k, r, "", completed[T]); err != nil {
		return nil, err
	}
	if all := failures[T](k, r); len(all) > 0 {
		return nil, all[0]
	}
	return r, nil
}

// outOfTime is the error of a wait that came to its limit and does not go on: it is not to,
// or no member had ended in a way that it could go on with.
func outOfTime[T any](k *ask, r *result, reason string, enough func(*ask, *Outcome[T]) bool) error {
	switch {
	case r.outcome.Reason != "timed_out":
		return nil
	case !k.policy.Proceed:
		return timedOut[T](r, reason)
	case !some(k, r, enough):
		return timedOut[T](r, noneCompleted)
	}
	return nil
}

// some tells whether a member had ended in such a way when the wait was decided.
func some[T any](k *ask, r *result, way func(*ask, *Outcome[T]) bool) bool {
	for _, at := range r.ended() {
		if o := outcomeOf[T](r, at[0]); way(k, &o) {
			return true
		}
	}
	return false
}

// completed tells whether there is a result: ContinueOn excuses a failure, and makes no result of it.
func completed[T any](_ *ask, o *Outcome[T]) bool { return o.Status == queue.Completed }

// completedOrExcused tells whether it has completed, or ended in a way that counts as that.
func completedOrExcused[T any](k *ask, o *Outcome[T]) bool {
	return completed(k, o) || k.done(o.Index, o)
}

// done tells whether an ending other than completion counts as that.
func (k *ask) done(place int, o interface{ ending() Ending }) bool {
	_, _, more := k.members[place].member()
	return (k.policy.ContinueOn|more)&o.ending() != 0
}

// excused tells whether an ending other than completion is none that fails the wait.
func (k *ask) excused(place int, o interface{ ending() Ending }) bool {
	return k.done(place, o) || o.ending() == OnCancel && k.policy.SkipCancelled
}

// ending is how it ended, 0 for completion.
func (o *Outcome[T]) ending() Ending {
	switch {
	case o.Status == queue.Cancelled:
		return OnCancel
	case o.Status != queue.Failed:
		return 0
	}
	// A run whose policy is to fail has failed when its time was up (lua/wait/counts_as.lua).
	if f, ok := o.Err.(*queue.TaskFailedError); ok && (f.Reason == "failed" || f.Reason == "timeout") {
		return OnFailed
	} else if o.TimedOut {
		return OnTimeout
	}
	return OnError
}

// failures are the errors of those that failed the wait, in the order they ended.
func failures[T any](k *ask, r *result) (all []error) {
	for _, at := range r.ended() {
		if o := outcomeOf[T](r, at[0]); o.Err != nil && !k.excused(at[0], &o) {
			all = append(all, o.Err)
		}
	}
	return all
}

// JoinN waits until n of the tasks have completed, and returns those, in the order they
// did. The others go on. As soon as n is impossible it returns a *WaitImpossibleError. A
// task that is given twice is one of n, and is told of once.
func JoinN[T any](on Waiter, n int, futures ...*Future[T]) ([]Outcome[T], error) {
	k := newAsk(on, queue.WaitNOfM, n, futures)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	var done []Outcome[T]
	for _, at := range r.ended() {
		if r.outcome.Reason == "satisfied" && len(done) == k.need {
			break // of thousands more may have completed before the wait began
		}
		switch o := outcomeOf[T](r, at[0]); {
		case o.Err == nil || k.done(at[0], &o):
			done = append(done, o)
		case o.Status == queue.Completed: // it counted, and its result cannot be read
			return nil, o.Err
		}
	}
	if r.outcome.Reason == "impossible" {
		return done, impossible[T](k, r)
	}
	return done, outOfTime(k, r, "", completed[T])
}

func impossible[T any](k *ask, r *result) error {
	e := &WaitImpossibleError{Need: k.need, Possible: len(r.places())}
	for _, at := range r.ended() {
		o := outcomeOf[T](r, at[0])
		if o.Status == queue.Completed || k.excused(at[0], &o) {
			continue
		}
		e.Possible--
		if e.First == nil {
			e.First = o.Err
		}
	}
	return e
}

// Await waits for one task.
func Await[T any](on Waiter, future *Future[T]) (v T, err error) {
	all, err := JoinAll(on, future)
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Run schedules a task and waits for it.
func Run[T any](on Waiter, in any, task queue.Task) (T, error) {
	a, _ := waiterOf(on)
	if a == nobody {
		var zero T
		return zero, errNobody
	}
	return Await(on, Schedule[T](a, in, task))
}

// AwaitAll waits for tasks of several types: all of them, as JoinAll does. Value tells
// the result of each.
func AwaitAll(on Waiter, futures ...Awaitable) error {
	a, policy := waiterOf(on)
	k := &ask{agent: a, policy: policy, mode: queue.WaitAll, members: futures}
	if len(futures) == 0 {
		_, err := k.wait()
		return err
	}
	_, err := join[[]byte](k)
	return err
}

// Value is the result of a task that a wait has told of, or why it has none.
func Value[T any](a *Agent, f *Future[T]) (v T, err error) {
	switch {
	case a == nil:
		return v, errNobody
	case f == nil || f.child == nil:
		return v, fmt.Errorf("%w: it is no future: give what Schedule, Promise, Signal, Child or Of returned", refusal.ErrInvalid)
	case f.err != nil:
		return v, f.err
	case f.agent != a.job.ID: // another agent's child may have the name of one of ours
		return v, fmt.Errorf("%w: %s", ErrNotOwner, f.id)
	}
	if r := a.known[f.name()]; r == nil || !final(r).Status.Ended() {
		return v, fmt.Errorf("%w: no wait has told of %s", ErrTaskStillRunning, f.id)
	}
	o := outcomeOf[T](&result{agent: a, members: []Awaitable{f}}, 0)
	return o.Value, o.Err
}

// Sleep waits for a time. Nothing has to be alive for it.
func Sleep(a *Agent, d time.Duration) error {
	if d <= 0 || a == nil {
		return a.barred()
	}
	c := a.schedule(queue.Task{Kind: "sleep", Queue: a.job.Queue, Timer: true, Delay: max(d, time.Millisecond)}, nil)
	_, err := Await(a, &Future[[]byte]{child: c})
	return err
}
