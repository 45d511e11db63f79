package agentwait

import (
	"strconv"

	"github.com/curfew-dev/curfew/queue"
)

// State is the state of a child, as waits and calls of Cancel in this run have reported it.
type State uint8

// A child is pending until a wait or a Cancel of this run has reported its end.
const (
	StatePending State = iota
	StateCompleted
	StateFailed
	StateCancelled
)

// String returns the state in small letters.
func (s State) String() string {
	return [...]string{"pending", "completed", "failed", "cancelled"}[s]
}

// State returns the latest state that a wait or a Cancel of this run has reported. It does not read
// from Redis, so a replay returns the same state. Use Peek to read the current state.
func (f *Future[T]) State() State {
	f.mustFuture()
	if f.owner == nil || f.id == "" {
		return StatePending
	}
	if f.owner.cancelled[f.name()] {
		return StateCancelled
	}
	r := f.owner.records[f.name()]
	if r == nil {
		return StatePending
	}
	switch final(r).Status {
	case queue.Completed:
		return StateCompleted
	case queue.Failed:
		return StateFailed
	case queue.Cancelled:
		return StateCancelled
	}
	return StatePending
}

// IsDone reports whether State is not StatePending.
func (f *Future[T]) IsDone() bool { return f.State() != StatePending }

// IsCancelled reports whether State is StateCancelled.
func (f *Future[T]) IsCancelled() bool { return f.State() == StateCancelled }

// Index returns the index of the task among the children without a name, in the order they were scheduled, from 0. It
// returns -1 for a child with a name. Outcome.Index is the index of a member in a wait.
func (f *Future[T]) Index() int {
	f.mustFuture()
	n, err := strconv.Atoi(f.name())
	if err != nil {
		return -1
	}
	return n - 1
}
