package agentwait

import (
	"strconv"

	"github.com/curfew-dev/curfew/queue"
)

// State is how far the agent knows a child to be.
type State uint8

// A child is Pending until a wait or a Cancel of this run has told how it ended.
const (
	StatePending State = iota
	StateCompleted
	StateFailed
	StateCancelled
)

// String is the state in small letters.
func (s State) String() string {
	return [...]string{"pending", "completed", "failed", "cancelled"}[s]
}

// State returns the state of the task as far as waits and calls of Cancel have reported it. It does not read from
// Redis, so a replay returns the same. Use Peek to read the current state.
func (f *Future[T]) State() State {
	f.made()
	if f.of == nil || f.id == "" {
		return StatePending
	}
	if f.of.cancelled[f.name()] {
		return StateCancelled
	}
	r := f.of.known[f.name()]
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

// IsDone tells whether the task has ended, by its State.
func (f *Future[T]) IsDone() bool { return f.State() != StatePending }

// IsCancelled tells whether the task is CANCELLED, by its State.
func (f *Future[T]) IsCancelled() bool { return f.State() == StateCancelled }

// Index is the place of the task among the children that have no name, in the order they were scheduled, from 0; -1
// for one that has a name. Where it stands in a wait says Outcome.Index.
func (f *Future[T]) Index() int {
	f.made()
	n, err := strconv.Atoi(f.name())
	if err != nil {
		return -1
	}
	return n - 1
}
