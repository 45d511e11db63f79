package agentwait

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Outcome is the outcome of one member of a wait.
type Outcome[T any] struct {
	Index    int // index of the member in the call
	ID, Kind string
	// Status is the status with which the member ended. If the member had not ended when the wait
	// was decided and was not cancelled, it is PENDING, even if the member has ended since.
	Status   queue.Status
	TimedOut bool // the member is FAILED because its time was up
	// Late means that the member had not ended when the wait was decided. If the wait has cancelled
	// it, Status is CANCELLED, or another status if the member ended before the cancellation.
	Late  bool
	Value T     // the result of a COMPLETED member
	Err   error // set if there is no Value
}

// IsSuccess reports whether the member has completed and its result was decoded.
func (o *Outcome[T]) IsSuccess() bool { return o.Status == queue.Completed && o.Err == nil }

// IntoResult returns Value and Err.
func (o *Outcome[T]) IntoResult() (T, error) { return o.Value, o.Err }

// result is the outcome of a wait, from which the functions make what they return.
type result struct {
	agent   *Agent
	outcome queue.WaitOutcome
	members []Awaitable
	late    map[string]bool // names of the members that had not ended when the wait was decided
	dropped bool            // the wait has cancelled those members
}

// result returns the result of the wait from its outcome in the journal.
func (k *waitCall) result(o queue.WaitOutcome, w *claim.Wait) (*result, error) {
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
	return r, k.agent.loadRecords(r)
}

// loadRecords reads the records of members that this run does not have. It does not read again the
// record of a member that has ended, because such a record no longer changes.
func (a *Agent) loadRecords(r *result) error {
	var names []string
	for _, m := range r.members {
		c, _, _ := m.member()
		name := c.name()
		if r.pending(name) {
			continue
		}
		if record := a.records[name]; record != nil && record.Status.Ended() {
			continue
		}
		a.records[name] = a.recalled[name]
		if record := a.records[name]; record == nil || !record.Status.Ended() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	children, err := a.readChildren(names)
	if err != nil {
		return a.callError(err)
	}
	for name, record := range children {
		a.records[name] = record
	}
	return nil
}

// readChildren reads the records of children, without their payloads, by their names. A child that
// does not exist is nil.
func (a *Agent) readChildren(names []string) (map[string]*queue.Record, error) {
	if a.rehearsal != nil {
		return a.rehearsal.children(names), nil
	}
	return claim.Of(a.q).Children(a, a.job.ID, names)
}

// readTasks reads the records of children with their payloads. The record of a child that does not
// exist is nil.
func (a *Agent) readTasks(tasks []queue.Task) ([]*queue.Record, error) {
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	if a.rehearsal != nil {
		return a.rehearsal.tasks(ids), nil
	}
	return a.q.GetAll(a, ids)
}

// pending reports whether a member had not ended when the wait was decided, and the wait has not
// cancelled it. No wait cancels a signal, because its message can still come later.
func (r *result) pending(name string) bool { return r.late[name] && (!r.dropped || isSignal(name)) }

// outcomeOf returns the outcome of the member at a place.
func outcomeOf[T any](r *result, place int) Outcome[T] {
	c, _, _ := r.members[place].member()
	o := Outcome[T]{Index: place, ID: c.id, Kind: c.kind, Late: r.late[c.name()]}
	if r.pending(c.name()) {
		o.Status, o.Err = queue.Pending, fmt.Errorf("%w: %s", ErrTaskStillRunning, c.id)
		return o
	}
	record := r.agent.records[c.name()]
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
			name, _ := splitSignal(c.name()[2:])
			err = &BadSignalError{Signal: name, Value: b, Err: err}
		} else if err != nil {
			err = fmt.Errorf("cannot decode the result of child %s: %w", c.id, err)
		}
	}
	var failed *queue.TaskFailedError
	if errors.As(err, &failed) {
		failed.Index = place
	}
	o.Err = err
	return o
}

// final returns the record of a member with its certain end. A cancelled member in its grace ends as
// CANCELLED, whatever its handler returns. The agent may read the record before that end, and its
// replay after it, and both must get the same record.
func final(r *queue.Record) *queue.Record {
	if r.Status.Ended() || r.CancelAt.IsZero() {
		return r
	}
	ended := *r
	ended.Status, ended.Reason = queue.Cancelled, cmp.Or(r.Reason, queue.ReasonCancelled)
	ended.Error = cmp.Or(r.Fields["cancel_reason"], "Task cancelled")
	return &ended
}

// places returns the places of each member, by name. A task that was given twice has two places.
func (r *result) places() map[string][]int {
	at := map[string][]int{}
	for i, m := range r.members {
		c, _, _ := m.member()
		at[c.name()] = append(at[c.name()], i)
	}
	return at
}

// endedMembers returns the members that had ended when the wait was decided, in the order in which
// they ended. Each element lists the member's places; the first place is the one that counts.
func (r *result) endedMembers() (order [][]int) {
	at := r.places()
	for _, name := range r.outcome.Settled {
		if places := at[name]; places != nil {
			order = append(order, places)
		}
	}
	return order
}

// inOrder returns the places of all members that have ended, in the order in which they ended.
// Members that had ended when the wait was decided come first.
func (r *result) inOrder() []int {
	var late []int
	for i, m := range r.members {
		if c, _, _ := m.member(); r.late[c.name()] && !r.pending(c.name()) {
			late = append(late, i)
		}
	}
	slices.SortStableFunc(late, func(i, j int) int { return r.endOf(i).Compare(r.endOf(j)) })
	return append(slices.Concat(r.endedMembers()...), late...)
}

func (r *result) endOf(place int) (at time.Time) {
	c, _, _ := r.members[place].member()
	if record := r.agent.records[c.name()]; record != nil {
		at = record.CompletedAt
	}
	return at
}

// refused returns the error for the agent after Redis has refused the wait.
func (k *waitCall) refused(err error) error {
	a := k.agent
	var child *claim.ChildError
	if errors.As(err, &child) {
		return a.refused(child.ID, err)
	}
	return a.callError(err)
}
