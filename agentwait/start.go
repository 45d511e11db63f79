package agentwait

import (
	"errors"
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Start creates the scheduled children without a wait. Its error joins the errors of the children
// that could not be scheduled or were refused, except those that an earlier call has returned. The
// refused children are forgotten, and all others are created. Start makes one call for 500 children,
// and one more if the journal has entries to write.
func (a *Agent) Start() error {
	if err := a.stopped(); err != nil {
		return err
	}
	err := a.send()
	if a.stopErr != nil {
		return err
	}
	return errors.Join(a.reportInvalid(), err)
}

// send creates the scheduled children. Its error joins the errors of the refused children.
func (a *Agent) send() error {
	// Write the journal first, because payloads may depend on Rand or Now, and a replay must get the
	// same values.
	if !a.replaying() {
		a.unsent, a.added = append(a.added, a.unsent...), nil
	}
	if err := a.write(); err != nil || len(a.unsent) == 0 {
		return err
	}
	refusals, errs := map[string]error{}, []error{}
	refuse := func(id string, err error) {
		refusals[id] = &claim.ChildError{ID: id, Err: err}
		errs = append(errs, refusals[id])
	}
	for i := range a.unsent { // with an invalid task EnqueueAll would refuse all of them
		if err := a.unsent[i].Check(a.q.MaxBytes()); err != nil {
			refuse(a.unsent[i].ID, err)
		}
	}
	a.forget(refusals)
	if a.rehearsal != nil {
		return errors.Join(append(errs, a.compareUnsent())...)
	}
	receipts, err := a.q.EnqueueAll(a, a.unsent)
	if err != nil {
		return errors.Join(append(errs, a.callError(err))...)
	}
	sent := a.unsent
	a.unsent = nil
	for i, r := range receipts {
		if r.Err == nil {
			continue
		}
		if err := a.stopError(&sent[i], r.Err); err != nil {
			return err
		}
		refuse(sent[i].ID, r.Err)
	}
	a.forget(refusals)
	return errors.Join(errs...)
}

// refused forgets a refused child, and returns the error for the agent.
func (a *Agent) refused(id string, err error) error {
	if i := slices.IndexFunc(a.unsent, func(t queue.Task) bool { return t.ID == id }); i >= 0 {
		if stop := a.stopError(&a.unsent[i], err); stop != nil {
			return stop
		}
	}
	a.forget(map[string]error{id: err})
	return a.callError(err)
}

// stopError returns an error if the refusal of a child ends this run, otherwise nil.
func (a *Agent) stopError(t *queue.Task, err error) error {
	switch {
	case errors.Is(err, refusal.ErrOwnerEnded):
		return a.callError(fmt.Errorf("%w: %w", refusal.ErrNotHeld, err))
	case errors.Is(err, refusal.ErrConflict) && !isSignal(nameOf(t.ID)):
		return a.childDiverged(t)
	}
	return nil
}

// forget removes refused children as if they had never been scheduled, and computes the digest
// without them. A later wait for such a child returns its error.
func (a *Agent) forget(refusals map[string]error) {
	if len(refusals) == 0 {
		return
	}
	for id, err := range refusals {
		if c := a.scheduled[id]; c != nil {
			c.err, c.reported = err, true
		}
		delete(a.names, nameOf(id))
	}
	refused := func(t queue.Task) bool { return refusals[t.ID] != nil }
	a.unsent = slices.DeleteFunc(a.unsent, refused)
	a.recent = slices.DeleteFunc(a.recent, refused)
	a.digest = newDigest()
	for i := range a.recent {
		digestChild(a.digest, &a.recent[i])
	}
}

// unreported returns the invalid children whose error no call has returned yet.
func (a *Agent) unreported() (children []*child) {
	for _, c := range a.invalid {
		if !c.reported {
			children = append(children, c)
		}
	}
	return children
}

// reportInvalid returns the errors of the invalid children, each once.
func (a *Agent) reportInvalid() error {
	var errs []error
	for _, c := range a.unreported() {
		c.reported = true
		errs = append(errs, &claim.ChildError{ID: c.id, Err: c.err})
	}
	return errors.Join(errs...)
}
