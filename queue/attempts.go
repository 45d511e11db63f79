package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Attempts makes the calls that only workers and agents need. Packages worker and agentwait use it;
// a program that uses these packages does not.
//
// A worker claims tasks (Fetch), renews its lease (Heartbeat), is notified of attempts that must
// stop (Stops), and reports how attempts ended (Settle). Each report carries the epoch of its claim,
// so that a report about a lost claim is refused. An agent adds to its journal (Remember), waits
// (Suspend), and reads its journal when it runs again (Recall). lua/calls.md describes the reply of
// each call.
type Attempts struct{ q *Queue }

// Attempts returns the calls that only workers and agents make.
func (q *Queue) Attempts() Attempts { return Attempts{q} }

// NewCall returns a new id for a call. A second call with the same id is a repeat, and has no
// further effect.
func NewCall() string { return names.NewCall() }

// CancelAs is CancelAll with the id of the call (NewCall). A repeat of the call returns the answers
// of the first call, whenever it is made. If owner is not empty, all tasks must be its children.
// Otherwise CancelAs returns [refusal.ErrNotOwner] and cancels none. As with CancelAll, a call that
// gets no reply from Redis can have cancelled some tasks: make the same call again.
func (a Attempts) CancelAs(ctx context.Context, call, owner string, ids []string, reason string) ([]Cancellation, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("cancel as", "", err)
	}
	return a.q.cancelAs(ctx, call, owner, ids, reason)
}
