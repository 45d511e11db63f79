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

func newWaitCall[T any](on Waiter, mode queue.Mode, need int, futures []*Future[T]) *waitCall {
	a, policy := waiterOf(on)
	return &waitCall{agent: a, policy: policy, mode: mode, need: need, members: awaitables(futures)}
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
	k := newWaitCall(on, queue.WaitAll, 0, futures)
	if len(futures) == 0 {
		_, err := k.wait() // an invalid policy is an error even without tasks
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
func join[T any](k *waitCall) (*result, error) {
	if k.policy.FailFast {
		k.mode = queue.WaitFailFast
	}
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	if err := timeoutError(k, r, "", completed[T]); err != nil {
		return nil, err
	}
	if errs := failures[T](k, r); len(errs) > 0 {
		return nil, errs[0]
	}
	return r, nil
}

// timeoutError returns the error of a wait that reached its limit. It returns nil if the agent can
// continue: that needs Wait.Proceed, and a member for which enough reports true.
func timeoutError[T any](k *waitCall, r *result, reason string, enough func(*waitCall, *Outcome[T]) bool) error {
	switch {
	case r.outcome.Reason != "timed_out":
		return nil
	case !k.policy.Proceed:
		return timedOut[T](r, reason)
	case !anyEnded(k, r, enough):
		return timedOut[T](r, noneCompleted)
	}
	return nil
}

// anyEnded reports whether match is true for a member that had ended when the wait was decided.
func anyEnded[T any](k *waitCall, r *result, match func(*waitCall, *Outcome[T]) bool) bool {
	for _, at := range r.endedMembers() {
		if o := outcomeOf[T](r, at[0]); match(k, &o) {
			return true
		}
	}
	return false
}

// completed reports whether a member has completed. A failure that ContinueOn excuses is not a result.
func completed[T any](_ *waitCall, o *Outcome[T]) bool { return o.Status == queue.Completed }

// completedOrExcused reports whether a member has completed, or has ended in a way that counts as done.
func completedOrExcused[T any](k *waitCall, o *Outcome[T]) bool {
	return completed(k, o) || k.done(o.Index, o)
}

// done reports whether the member's end counts as done because of ContinueOn.
func (k *waitCall) done(place int, o interface{ ending() Ending }) bool {
	_, _, continueOn := k.members[place].member()
	return (k.policy.ContinueOn|continueOn)&o.ending() != 0
}

// excused reports whether the wait can succeed in spite of the member's end.
func (k *waitCall) excused(place int, o interface{ ending() Ending }) bool {
	return k.done(place, o) || o.ending() == OnCancel && k.policy.SkipCancelled
}

// ending returns the kind of the member's end, 0 if it completed or has not ended.
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
func failures[T any](k *waitCall, r *result) (errs []error) {
	for _, at := range r.endedMembers() {
		if o := outcomeOf[T](r, at[0]); o.Err != nil && !k.excused(at[0], &o) {
			errs = append(errs, o.Err)
		}
	}
	return errs
}

// JoinN waits until n tasks have completed, and returns them in the order they completed. The other
// tasks continue. As soon as n tasks can no longer complete, JoinN returns a *WaitImpossibleError and
// the tasks that have completed. A task that is given twice counts once, and is returned once.
func JoinN[T any](on Waiter, n int, futures ...*Future[T]) ([]Outcome[T], error) {
	k := newWaitCall(on, queue.WaitNOfM, n, futures)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	var done []Outcome[T]
	for _, at := range r.endedMembers() {
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
	return done, timeoutError(k, r, "", completed[T])
}

func impossible[T any](k *waitCall, r *result) error {
	e := &WaitImpossibleError{Need: k.need, Possible: len(r.places())}
	for _, at := range r.endedMembers() {
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
	values, err := JoinAll(on, future)
	if err != nil {
		return v, err
	}
	return values[0], nil
}

// Run schedules a child and waits for it, as Schedule and Await do.
func Run[T any](on Waiter, in any, task queue.Task) (T, error) {
	a, _ := waiterOf(on)
	if a == nilAgent {
		var zero T
		return zero, errNilAgent
	}
	return Await(on, Schedule[T](a, in, task))
}

// AwaitAll is JoinAll for tasks of several types. Value then returns the result of each task.
func AwaitAll(on Waiter, futures ...Awaitable) error {
	a, policy := waiterOf(on)
	k := &waitCall{agent: a, policy: policy, mode: queue.WaitAll, members: futures}
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
		return v, errNilAgent
	case f == nil || f.child == nil:
		return v, fmt.Errorf("%w: the future is nil or empty: use what Schedule, Promise, Signal, Child or Of returned", refusal.ErrInvalid)
	case f.err != nil:
		return v, f.err
	case f.agent != a.job.ID: // a child of another agent can have the same name
		return v, fmt.Errorf("%w: %s", ErrNotOwner, f.id)
	}
	if r := a.records[f.name()]; r == nil || !final(r).Status.Ended() {
		return v, fmt.Errorf("%w: no wait has reported the end of %s", ErrTaskStillRunning, f.id)
	}
	o := outcomeOf[T](&result{agent: a, members: []Awaitable{f}}, 0)
	return o.Value, o.Err
}

// Sleep waits for d, as a timer in Redis. No process has to run meanwhile. If d is not positive,
// Sleep returns at once.
func Sleep(a *Agent, d time.Duration) error {
	if d <= 0 || a == nil {
		return a.stopped()
	}
	c := a.schedule(queue.Task{Kind: "sleep", Queue: a.job.Queue, Timer: true, Delay: max(d, time.Millisecond)}, nil)
	_, err := Await(a, &Future[[]byte]{child: c})
	return err
}
