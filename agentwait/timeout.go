package agentwait

import "github.com/curfew-dev/curfew/queue"

// TimeoutResult is a *WaitTimeoutError with the results that were complete at the limit. Get it with
// errors.As(err, &timeout), where timeout is a *TimeoutResult[T] and T the type of the tasks.
type TimeoutResult[T any] struct {
	*WaitTimeoutError
	Values []Indexed[T] // results of the tasks that had completed, in the order given
	// Unfinished lists the tasks that had not ended, in the order given; Pending has their indexes. The wait has
	// cancelled them, unless Wait.KeepPending is set.
	Unfinished []*Future[T]
}

// Indexed is a result and the index of its task among the members of a wait.
type Indexed[T any] struct {
	Index int
	Value T
}

// Unwrap returns the *WaitTimeoutError.
func (e *TimeoutResult[T]) Unwrap() error { return e.WaitTimeoutError }

// timedOut returns the error of a wait that reached its limit. Members that ended after the
// limit count as pending.
func timedOut[T any](r *result, reason string) *TimeoutResult[T] {
	e := &WaitTimeoutError{Reason: reason}
	t := &TimeoutResult[T]{WaitTimeoutError: e}
	for i, m := range r.members {
		switch o := outcomeOf[T](r, i); {
		case o.Late:
			e.Pending = append(e.Pending, i)
			f, ok := m.(*Future[T])
			if !ok { // a future of another type, in AwaitAll
				c, _, _ := m.member()
				f = &Future[T]{child: c}
			}
			t.Unfinished = append(t.Unfinished, f)
		case o.Status == queue.Completed:
			e.Completed = append(e.Completed, i)
			if o.Err == nil {
				t.Values = append(t.Values, Indexed[T]{i, o.Value})
			}
		case o.Status == queue.Cancelled:
			e.Cancelled = append(e.Cancelled, i)
		default:
			e.Failed = append(e.Failed, i)
		}
	}
	return t
}
