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

// JoinAll waits until all tasks have ended, and returns their results in the order given. If a task
// does not complete, JoinAll returns the error of the first task that ended without a result. It
// returns that error when the last task has ended, or as soon as a task fails with Wait.FailFast, or
// at once if a task had failed before the wait.
//
// With Wait.Proceed, ContinueOn or SkipCancelled JoinAll can succeed although a task has no result.
// Its place then has the zero value; Value and JoinAllSettled distinguish that from a result.
// Without tasks JoinAll returns at once.
func JoinAll[T any](on Waiter, futures ...*Future[T]) ([]T, error) {
	k := newAsk(on, queue.WaitAll, 0, futures)
	if len(futures) == 0 {
		_, err := k.wait() // an invalid policy is refused without tasks too
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

// join waits for all members, and returns the error of the first that makes the wait fail.
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

// outOfTime returns the error of a wait that reached its limit, unless the agent can continue: that
// needs Wait.Proceed, and a member for which enough reports true.
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

// some reports whether way is true for a member that had ended when the wait was decided.
func some[T any](k *ask, r *result, way func(*ask, *Outcome[T]) bool) bool {
	for _, at := range r.ended() {
		if o := outcomeOf[T](r, at[0]); way(k, &o) {
			return true
		}
	}
	return false
}

// completed reports whether a member has completed. A failure that ContinueOn excuses is not a result.
func completed[T any](_ *ask, o *Outcome[T]) bool { return o.Status == queue.Completed }

// completedOrExcused reports whether a member has completed, or has ended in a way that counts as done.
func completedOrExcused[T any](k *ask, o *Outcome[T]) bool {
	return completed(k, o) || k.done(o.Index, o)
}

// done reports whether ContinueOn makes the ending of a member count as done.
func (k *ask) done(place int, o interface{ ending() Ending }) bool {
	_, _, more := k.members[place].member()
	return (k.policy.ContinueOn|more)&o.ending() != 0
}

// excused reports whether the ending of a member does not make the wait fail.
func (k *ask) excused(place int, o interface{ ending() Ending }) bool {
	return k.done(place, o) || o.ending() == OnCancel && k.policy.SkipCancelled
}

// ending returns how the member ended, 0 if it completed or has not ended.
func (o *Outcome[T]) ending() Ending {
	switch {
	case o.Status == queue.Cancelled:
		return OnCancel
	case o.Status != queue.Failed:
		return 0
	}
	// A run with queue.DeadlineFail that has timed out counts as failed (lua/agent/rules.lua).
	if f, ok := o.Err.(*queue.TaskFailedError); ok && (f.Reason == "failed" || f.Reason == "timeout") {
		return OnFailed
	} else if o.TimedOut {
		return OnTimeout
	}
	return OnError
}

// failures returns the errors of the members that make the wait fail, in the order they ended.
func failures[T any](k *ask, r *result) (all []error) {
	for _, at := range r.ended() {
		if o := outcomeOf[T](r, at[0]); o.Err != nil && !k.excused(at[0], &o) {
			all = append(all, o.Err)
		}
	}
	return all
}

// JoinN waits until n tasks have completed, and returns them in the order they completed. The other
// tasks continue. As soon as n tasks can no longer complete, JoinN returns a *WaitImpossibleError and
// the tasks that have completed. A task that is given twice counts once, and is returned once.
func JoinN[T any](on Waiter, n int, futures ...*Future[T]) ([]Outcome[T], error) {
	k := newAsk(on, queue.WaitNOfM, n, futures)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	var done []Outcome[T]
	for _, at := range r.ended() {
		if r.outcome.Reason == "satisfied" && len(done) == k.need {
			break // more than n tasks may have completed before the wait began
		}
		switch o := outcomeOf[T](r, at[0]); {
		case o.Err == nil || k.done(at[0], &o):
			done = append(done, o)
		case o.Status == queue.Completed: // the task counted, and its result cannot be decoded
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

// Await waits until one task has ended, and returns its result or its error.
func Await[T any](on Waiter, future *Future[T]) (v T, err error) {
	all, err := JoinAll(on, future)
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Run schedules a child and waits for it, as Schedule and Await do.
func Run[T any](on Waiter, in any, task queue.Task) (T, error) {
	a, _ := waiterOf(on)
	if a == nobody {
		var zero T
		return zero, errNobody
	}
	return Await(on, Schedule[T](a, in, task))
}

// AwaitAll is like JoinAll, for tasks of several types. Value then returns the result of each.
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

// Value returns the result or the error of a child whose end a wait or Cancel of this run has reported.
// Before that, it returns ErrTaskStillRunning. Value does not read from Redis.
func Value[T any](a *Agent, f *Future[T]) (v T, err error) {
	switch {
	case a == nil:
		return v, errNobody
	case f == nil || f.child == nil:
		return v, fmt.Errorf("%w: the future is nil or empty: use what Schedule, Promise, Signal, Child or Of returned", refusal.ErrInvalid)
	case f.err != nil:
		return v, f.err
	case f.agent != a.job.ID: // a child of another agent can have the same name
		return v, fmt.Errorf("%w: %s", ErrNotOwner, f.id)
	}
	if r := a.known[f.name()]; r == nil || !final(r).Status.Ended() {
		return v, fmt.Errorf("%w: no wait has reported the end of %s", ErrTaskStillRunning, f.id)
	}
	o := outcomeOf[T](&result{agent: a, members: []Awaitable{f}}, 0)
	return o.Value, o.Err
}

// Sleep waits for d, as a timer in Redis. No process has to run meanwhile. If d is not positive,
// Sleep returns at once.
func Sleep(a *Agent, d time.Duration) error {
	if d <= 0 || a == nil {
		return a.barred()
	}
	c := a.schedule(queue.Task{Kind: "sleep", Queue: a.job.Queue, Timer: true, Delay: max(d, time.Millisecond)}, nil)
	_, err := Await(a, &Future[[]byte]{child: c})
	return err
}
