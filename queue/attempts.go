package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Attempts has the calls that only workers and agents make. Packages worker and agentwait
// make them. A program that uses these packages needs none of them.
//
// A worker takes tasks (Fetch), says that it lives and what it holds (Heartbeat), is told what
// must stop (Stops), and reports how attempts ended (Settle), each with the epoch of its claim.
// An agent writes down what it must find again (Remember), waits (Suspend), and reads both
// when it runs again (Recall). docs/protocol.md says what each call answers.
type Attempts struct{ q *Queue }

// Attempts returns the calls that only workers and agents make.
func (q *Queue) Attempts() Attempts { return Attempts{q} }

// NewCall makes the identity of a call: the same one again is a repeat.
func NewCall() string { return names.NewCall() }

// CancelAs is CancelAll under a name of the call: the same call again, whenever it comes,
// gets the answers of the first one. If there is an owner, all of them must be children
// of that; if one is not, it returns [refusal.ErrNotOwner], and none is cancelled. As with CancelAll, a
// call that gets no answer from Redis may have cancelled some: make the same call again.
func (a Attempts) CancelAs(ctx context.Context, call, owner string, ids []string, reason string) ([]Cancellation, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("cancel as", "", err)
	}
	return a.q.cancelAs(ctx, call, owner, ids, reason)
}
