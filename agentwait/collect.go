package agentwait

import (
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Collect makes the agent collect the ends of its children: NextEnds returns the record of each child that ends, once, and
// of each signal. Children that have ended before are returned too. Call it first: an agent that has more than 500 children
// by then is refused.
func (a *Agent) Collect() error {
	if err := a.barred(); err != nil {
		return err
	}
	number, entry, ok := a.remembered()
	switch {
	case !ok:
		a.record(number, []byte(collects))
	case entry != collects:
		return a.diverged(what(entry), what(collects))
	}
	return nil
}

// learnEnds reads the records of the children whose ends a wait has handed over. In a replay it reads those of the later
// waits too, so that a replay of many waits takes one call.
func (a *Agent) learnEnds(r *result) error {
	all := *r
	for _, name := range r.outcome.Settled {
		if a.known[name] == nil && a.loaded[name] == nil {
			for _, entry := range a.memory.Journal {
				if o, ok := queue.ReadWaitOutcome(entry); ok && o.Label == r.outcome.Label {
					for _, name := range o.Settled {
						all.members = append(all.members, Child[[]byte](a, name))
					}
				}
			}
			break
		}
	}
	return a.learn(&all)
}

// collects is the entry of Collect in the journal. The call that writes it begins to keep the ends (lua/wait/ends.lua).
const collects = "collect"

// NextEnds waits until a child has ended that no earlier NextEnds has returned. It returns the records of all such
// children, at most 500, in the order in which they ended. How long it takes does not depend on how many children there
// are. It is for agents with many children that do something at each end: a JoinAll for each of 1,000 children names
// 1,000 members, and a NextEnds names none. The agent must have called Collect.
//
// NextEnds uses Limit, From, Reason and Proceed of a Wait. If no child ends within the limit, it returns a
// *WaitTimeoutError, and all children continue. Proceed changes nothing of that: the event of the timeout has the policy
// proceed_with_available in place of fail.
func NextEnds(on Waiter) ([]*queue.Record, error) {
	a, policy := waiterOf(on)
	if only := (Wait{Limit: policy.Limit, From: policy.From, Reason: policy.Reason, Proceed: policy.Proceed}); policy != only {
		return nil, fmt.Errorf("%w: NextEnds uses Limit, From, Reason and Proceed of a Wait: leave the rest out", refusal.ErrInvalid)
	}
	policy.KeepPending = true
	r, err := (&ask{agent: a, policy: policy, mode: queue.WaitCollect}).run()
	switch {
	case err != nil:
		return nil, err
	case r.outcome.Reason == "timed_out":
		return nil, &WaitTimeoutError{Reason: "no child has ended within the limit"}
	}
	for _, name := range r.outcome.Settled {
		r.members = append(r.members, Child[[]byte](a, name))
	}
	if err := a.learnEnds(r); err != nil {
		return nil, err
	}
	ends := make([]*queue.Record, len(r.outcome.Settled))
	for i, name := range r.outcome.Settled {
		if ends[i] = a.known[name]; ends[i] == nil {
			return nil, a.trouble(fmt.Errorf("child %s.%s has ended, and its record is gone: %w", a.job.ID, name, refusal.ErrBroken))
		}
	}
	slices.SortStableFunc(ends, func(a, b *queue.Record) int { return a.CompletedAt.Compare(b.CompletedAt) })
	return ends, nil
}
