package agentwait

import "github.com/curfew-dev/curfew/queue"

// Settled is what became of all tasks of a wait. Outcomes are in the order given, and each
// is in one of the lists, by its Status. Outcome.Late tells which of them had not ended
// when the wait was decided.
type Settled[T any] struct {
	Outcomes  []Outcome[T]
	Completed []Outcome[T] // a result that is no T among them: its Err says so
	Failed    []Outcome[T] // timeouts among them
	Cancelled []Outcome[T] // by whomever: Late by the wait
	Pending   []Outcome[T] // had not ended when the wait was decided, and were let go on
	TimedOut  bool         // the wait came to its limit
	order     []int        // of the ends
}

// FailedOrCancelled are the tasks that have ended without a result, in the order given.
func (s *Settled[T]) FailedOrCancelled() (all []Outcome[T]) {
	for _, o := range s.Outcomes {
		if o.Status == queue.Failed || o.Status == queue.Cancelled {
			all = append(all, o)
		}
	}
	return all
}

// SkipCancelled are the tasks that have completed, or the error of the first that failed.
func (s *Settled[T]) SkipCancelled() ([]Outcome[T], error) {
	for _, i := range s.order {
		if o := s.Outcomes[i]; o.Err != nil && o.Status != queue.Cancelled {
			return nil, o.Err
		}
	}
	return s.Completed, nil
}

// JoinAllSettled waits until all tasks have ended, however they end, and tells what
// became of each. If the wait comes to its limit, what there is by then is returned, with
// a *WaitTimeoutError unless Wait.Proceed says that this is all right, even if it is
// nothing.
func JoinAllSettled[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitSettled, 0, futures))
}

// JoinNSettled is JoinAllSettled until n of the tasks have ended.
func JoinNSettled[T any](on Waiter, n int, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitNSettled, n, futures))
}

// Peek is JoinAllSettled without the wait: what has become of the tasks so far.
func Peek[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitPeek, 0, futures))
}

func settle[T any](k *ask) (*Settled[T], error) {
	if len(k.members) == 0 {
		_, err := k.wait() // what cannot be meant is refused for none as for many
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
