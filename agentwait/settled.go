package agentwait

import "github.com/curfew-dev/curfew/queue"

// Settled holds the outcomes of all tasks of a wait, in the order given. Each outcome is also in one
// of the lists, by its Status. Outcome.Late marks the tasks that had not ended when the wait was
// decided.
type Settled[T any] struct {
	Outcomes  []Outcome[T]
	Completed []Outcome[T] // includes tasks whose result cannot be decoded as T; their Err is set
	Failed    []Outcome[T] // includes timeouts
	Cancelled []Outcome[T] // by another call, or by the wait, which also sets Late
	Pending   []Outcome[T] // tasks that had not ended when the wait was decided, and continue
	TimedOut  bool         // the wait reached its limit
	order     []int        // places in the order of the ends
}

// FailedOrCancelled returns the outcomes of the tasks that failed or were cancelled, in the order given.
func (s *Settled[T]) FailedOrCancelled() (outcomes []Outcome[T]) {
	for _, o := range s.Outcomes {
		if o.Status == queue.Failed || o.Status == queue.Cancelled {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// SkipCancelled returns the outcomes of the tasks that have completed. It ignores cancelled and
// pending tasks. If a task has failed, it returns the error of the first that failed.
func (s *Settled[T]) SkipCancelled() ([]Outcome[T], error) {
	for _, i := range s.order {
		if o := s.Outcomes[i]; o.Err != nil && o.Status != queue.Cancelled {
			return nil, o.Err
		}
	}
	return s.Completed, nil
}

// JoinAllSettled waits until all tasks have ended, with or without a result, and returns the outcome of
// each. If the wait reaches its limit, JoinAllSettled returns the outcomes so far and a
// *WaitTimeoutError. With Wait.Proceed it returns no error then, even if no task has completed.
func JoinAllSettled[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newWaitCall(on, queue.WaitSettled, 0, futures))
}

// JoinNSettled is JoinAllSettled for a part of the tasks: it waits until n have ended.
func JoinNSettled[T any](on Waiter, n int, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newWaitCall(on, queue.WaitNSettled, n, futures))
}

// Peek is JoinAllSettled without waiting: it returns the outcomes so far. A replay returns the same
// outcomes.
func Peek[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newWaitCall(on, queue.WaitPeek, 0, futures))
}

func settle[T any](k *waitCall) (*Settled[T], error) {
	if len(k.members) == 0 {
		_, err := k.wait() // an invalid policy is an error even without tasks
		return &Settled[T]{}, err
	}
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	s := settledOf[T](r)
	if s.TimedOut && !k.policy.Proceed {
		return s, timedOut[T](r, "")
	}
	return s, nil
}

func settledOf[T any](r *result) *Settled[T] {
	s := &Settled[T]{order: r.inOrder(), TimedOut: r.outcome.Reason == "timed_out"}
	for i := range r.members {
		o := outcomeOf[T](r, i)
		s.Outcomes = append(s.Outcomes, o)
		list := &s.Failed
		switch o.Status {
		case queue.Completed:
			list = &s.Completed
		case queue.Cancelled:
			list = &s.Cancelled
		case queue.Pending:
			list = &s.Pending
		}
		*list = append(*list, o)
	}
	return s
}
