package agentwait

import (
	"fmt"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Winner is the result of the task that decided a wait, and the other tasks.
type Winner[T any] struct {
	Index int // index of the task in the call
	ID    string
	Value T
	// Rest lists the other tasks, in the order given. It never includes the winner, even if that was
	// passed twice. Select has cancelled the tasks that had not ended, unless Wait.Losers is
	// KeepLosers. Cancel returns the end of such a task.
	Rest []*Future[T]
	// Attempts holds the result of cancelling each task of Rest, except signals, which no wait
	// cancels. It is nil if the wait does not cancel its losers.
	Attempts []CancelAttempt[T]
}

// CancelAttempt is the result of cancelling one loser of a wait.
type CancelAttempt[T any] struct {
	Index int // index of the member in the call
	ID    string
	CancelResult[T]
}

// Select waits for the first task to end, and cancels the others. If that task did not complete, Select
// returns its error.
func Select[T any](on Waiter, futures ...*Future[T]) (Winner[T], error) {
	k := newWaitCall(on, queue.WaitAny, 0, futures)
	if k.policy.Losers == "" {
		k.policy.Losers = CancelLosers
	}
	return pick("select", k, futures)
}

// SelectOK waits for the first task to complete, and lets the others continue. If no task completes, it
// returns an *AllTasksFailedError.
func SelectOK[T any](on Waiter, futures ...*Future[T]) (Winner[T], error) {
	return pick("select_ok", newWaitCall(on, queue.WaitAnyOK, 0, futures), futures)
}

func pick[T any](name string, k *waitCall, futures []*Future[T]) (w Winner[T], err error) {
	if len(futures) == 0 {
		return w, fmt.Errorf("%w: %s requires at least one future", refusal.ErrInvalid, name)
	}
	r, err := k.run()
	if err != nil {
		return w, err
	}
	switch r.outcome.Reason {
	case "timed_out":
		return w, timedOut[T](r, "")
	case "impossible":
		return w, allFailed[T](k, r)
	}
	w.Index = r.places()[r.outcome.Winner][0]
	for _, f := range futures {
		if f.id != futures[w.Index].id {
			w.Rest = append(w.Rest, f)
		}
	}
	if k.policy.Losers == CancelLosers {
		w.Attempts = attempts[T](r)
	}
	o := outcomeOf[T](r, w.Index)
	w.ID, w.Value = o.ID, o.Value
	if k.done(w.Index, &o) {
		return w, nil
	}
	return w, o.Err
}

// attempts returns the result of cancelling each loser. A task that was passed twice appears once.
func attempts[T any](r *result) (list []CancelAttempt[T]) {
	at := r.places()
	for i, m := range r.members {
		c, _, _ := m.member()
		if c.name() == r.outcome.Winner || r.pending(c.name()) || at[c.name()][0] != i {
			continue
		}
		list = append(list, CancelAttempt[T]{Index: i, ID: c.id, CancelResult: attempt[T](r, i)})
	}
	return list
}

func attempt[T any](r *result, place int) (c CancelResult[T]) {
	o := outcomeOf[T](r, place)
	record := r.agent.records[nameOf(o.ID)]
	switch {
	case record == nil || !final(record).Status.Ended():
		c.Err = o.Err
	case o.Status == queue.Completed:
		c.AlreadyCompleted, c.Value, c.Err = true, o.Value, o.Err
	case o.Status == queue.Failed:
		c.AlreadyFailed, c.Error = true, record.Error
	case o.Late && (record.Reason == queue.ReasonNotNeeded || !record.CancelAt.IsZero()):
		c.Cancelled = true
	default:
		c.AlreadyCancelled, c.Error = true, final(record).Error
	}
	return c
}

func allFailed[T any](k *waitCall, r *result) error {
	errs := failures[T](k, r)
	if len(errs) == 0 { // all tasks were cancelled: Wait.SkipCancelled does not count that as a failure, but it is no success
		for _, at := range r.endedMembers() {
			errs = append(errs, outcomeOf[T](r, at[0]).Err)
		}
	}
	return &AllTasksFailedError{First: errs[0], All: errs}
}
