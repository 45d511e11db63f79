package agentwait

import (
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Collect makes the namespace keep the ends of the agent's children and signals, so that NextEnds
// can return each of them once, including earlier ends. Call it first in the handler: an agent that
// has more than 500 children by then is refused.
func (a *Agent) Collect() error {
	if err := a.stopped(); err != nil {
		return err
	}
	number, entry, ok := a.nextEntry()
	switch {
	case !ok:
		a.record(number, []byte(collectEntry))
	case entry != collectEntry:
		return a.diverged(describeEntry(entry), describeEntry(collectEntry))
	}
	return nil
}

// loadEnds reads the records of the children whose ends a wait has returned. In a replay it also
// reads the records for later waits, so that a replay of many waits needs one call.
func (a *Agent) loadEnds(r *result) error {
	ends := *r
	for _, name := range r.outcome.Settled {
		if a.records[name] == nil && a.recalled[name] == nil {
			for _, entry := range a.memory.Journal {
				if o, ok := queue.ReadWaitOutcome(entry); ok && o.Label == r.outcome.Label {
					for _, name := range o.Settled {
						ends.members = append(ends.members, Child[[]byte](a, name))
					}
				}
			}
			break
		}
	}
	return a.loadRecords(&ends)
}

// collectEntry is the journal entry of Collect. When the script writes it, it begins to keep the
// ends (lua/wait/ends.lua).
const collectEntry = "collect"

// NextEnds waits until a child has ended that no earlier NextEnds has returned. It returns the
// records of all such children, at most 500, in the order in which they ended. Its cost does not
// depend on the number of children. It is for agents that do something at each end of many children:
// a JoinAll for each of 1,000 ends would name up to 1,000 members, and NextEnds names none. The
// agent must have called Collect.
//
// NextEnds uses Limit, From, Reason and Proceed of a Wait. If no child ends within the limit, it
// returns a *WaitTimeoutError, and all children continue. With Proceed the result is the same, but
// the event of the timeout has the policy proceed_with_available in place of fail.
func NextEnds(on Waiter) ([]*queue.Record, error) {
	a, policy := waiterOf(on)
	if allowed := (Wait{Limit: policy.Limit, From: policy.From, Reason: policy.Reason, Proceed: policy.Proceed}); policy != allowed {
		return nil, fmt.Errorf("%w: NextEnds uses Limit, From, Reason and Proceed of a Wait: leave the rest out", refusal.ErrInvalid)
	}
	policy.KeepPending = true
	r, err := (&waitCall{agent: a, policy: policy, mode: queue.WaitCollect}).run()
	switch {
	case err != nil:
		return nil, err
	case r.outcome.Reason == "timed_out":
		return nil, &WaitTimeoutError{Reason: "no child has ended within the limit"}
	}
	for _, name := range r.outcome.Settled {
		r.members = append(r.members, Child[[]byte](a, name))
	}
	if err := a.loadEnds(r); err != nil {
		return nil, err
	}
	ends := make([]*queue.Record, len(r.outcome.Settled))
	for i, name := range r.outcome.Settled {
		if ends[i] = a.records[name]; ends[i] == nil {
			return nil, a.callError(fmt.Errorf("child %s.%s has ended, and its record is stopErr: %w", a.job.ID, name, refusal.ErrBroken))
		}
	}
	slices.SortStableFunc(ends, func(a, b *queue.Record) int { return a.CompletedAt.Compare(b.CompletedAt) })
	return ends, nil
}
