package agentwait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Outcome is what became of a member of a wait.
type Outcome[T any] struct {
	Index    int // its place among the members
	ID, Kind string
	// Status is how it ended. A member that had not, when the wait did, and was let go on
	// is Pending here, whatever it has come to since.
	Status   queue.Status
	TimedOut bool // FAILED because its time was up
	// Late says that it had not ended when the wait was decided. Its Status is what it
	// came to after that: CANCELLED as a rule, unless its own end was quicker.
	Late  bool
	Value T     // if it has COMPLETED
	Err   error // if not
}

// IsSuccess tells whether it has completed.
func (o *Outcome[T]) IsSuccess() bool { return o.Status == queue.Completed && o.Err == nil }

// IntoResult is the value, or the error that says why there is none.
func (o *Outcome[T]) IntoResult() (T, error) { return o.Value, o.Err }

// result is a wait that is over.
type result struct {
	agent   *Agent
	outcome queue.WaitOutcome
	members []Awaitable
	late    map[string]bool // names of members that had not ended then
	dropped bool            // those were cancelled
}

// read makes the answer of a wait of what the journal says of it.
func (k *ask) read(o queue.WaitOutcome, w *queue.Wait) (*result, error) {
	r := &result{agent: k.agent, outcome: o, members: k.members, late: map[string]bool{}}
	r.dropped = w.CancelLosers
	if o.Reason == "timed_out" {
		r.dropped = !w.KeepPending
	}
	for _, m := range w.Members {
		r.late[nameOf(m.ID)] = true
	}
	for _, name := range o.Settled {
		delete(r.late, name)
	}
	return r, k.agent.learn(r)
}

// learn reads the members' records that are not known yet. One that has ended stays as
// it is.
func (a *Agent) learn(r *result) error {
	var names []string
	for _, m := range r.members {
		c, _, _ := m.member()
		name := c.name()
		if r.pending(name) {
			continue
		}
		if known := a.known[name]; known != nil && known.Status.Ended() {
			continue
		}
		a.known[name] = a.loaded[name]
		if known := a.known[name]; known == nil || !known.Status.Ended() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := a.q.Attempts().Children(a, a.job.ID, names)
	if err != nil {
		return a.trouble(err)
	}
	for name, record := range found {
		a.known[name] = record
	}
	return nil
}

// pending tells whether a member had not ended then, and went on. Nobody cancels a
// signal: what it says may come later.
func (r *result) pending(name string) bool { return r.late[name] && (!r.dropped || isSignal(name)) }

// outcomeOf is what became of the member at a place.
func outcomeOf[T any](r *result, place int) Outcome[T] {
	c, _, _ := r.members[place].member()
	o := Outcome[T]{Index: place, ID: c.id, Kind: c.kind, Late: r.late[c.name()]}
	if r.pending(c.name()) {
		o.Status, o.Err = queue.Pending, fmt.Errorf("%w: %s", ErrTaskStillRunning, c.id)
		return o
	}
	record := r.agent.known[c.name()]
	if record == nil {
		o.Status, o.Err = queue.Failed, fmt.Errorf("child %s: %w", c.id, refusal.ErrNotFound)
		return o
	}
	record = final(record)
	o.Kind, o.Status, o.TimedOut = record.Kind, record.Status, record.TimedOut
	if !record.Status.Ended() {
		o.Status, o.Err = queue.Pending, fmt.Errorf("%w: %s", ErrTaskStillRunning, c.id)
		return o
	}
	b, err := record.Outcome()
	if err == nil {
		o.Value, err = decode[T](b)
		if err != nil && isSignal(c.name()) {
			name, _ := times(c.name()[2:])
			err = &BadSignalError{Signal: name, Value: b, Err: err}
		} else if err != nil {
			err = fmt.Errorf("the result of child %s is not what the agent takes it for: %w", c.id, err)
		}
	}
	var failed *queue.TaskFailedError
	if errors.As(err, &failed) {
		failed.Index = place
	}
	o.Err = err
	return o
}

// final is the record of a member as it ends. One that was cancelled and has its grace
// ends as that, whatever its handler returns, and an agent that looks earlier must be told
// the same as its replay, which may look later.
func final(r *queue.Record) *queue.Record {
	if r.Status.Ended() || r.CancelAt.IsZero() {
		return r
	}
	over := *r
	over.Status, over.Error = queue.Cancelled, cmp.Or(r.Fields["cancel_reason"], "Task cancelled")
	return &over
}

// places are those of each member, by name: one that was given twice has two.
func (r *result) places() map[string][]int {
	at := map[string][]int{}
	for i, m := range r.members {
		c, _, _ := m.member()
		at[c.name()] = append(at[c.name()], i)
	}
	return at
}

// ended are the members that had ended when the wait was decided, in the order they did,
// each by its places. The first of these is the one that counted.
func (r *result) ended() (order [][]int) {
	at := r.places()
	for _, name := range r.outcome.Settled {
		if places := at[name]; places != nil {
			order = append(order, places)
		}
	}
	return order
}

// inOrder are the places of all members that have ended: first those that had when the
// wait was decided, then the others, in the order they did.
func (r *result) inOrder() []int {
	var late []int
	for i, m := range r.members {
		if c, _, _ := m.member(); r.late[c.name()] && !r.pending(c.name()) {
			late = append(late, i)
		}
	}
	slices.SortStableFunc(late, func(i, j int) int { return r.endOf(i).Compare(r.endOf(j)) })
	return append(slices.Concat(r.ended()...), late...)
}

func (r *result) endOf(place int) (at time.Time) {
	c, _, _ := r.members[place].member()
	if record := r.agent.known[c.name()]; record != nil {
		at = record.CompletedAt
	}
	return at
}

// refused makes of the refusal of a wait what it means for the agent.
func (k *ask) refused(err error) error {
	a := k.agent
	var child *queue.ChildError
	if errors.As(err, &child) {
		return a.refused(child.ID, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		a.gone = err
	}
	return a.trouble(err)
}
