package agentwait

import (
	"errors"
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Start creates the scheduled children without a wait. Its error has each child that could not be
// scheduled or was refused, unless an earlier call has returned that error. The refused children are
// forgotten, and all others are created. Start makes one call for 500 children, and one
// before them if entries of the journal are not written yet.
func (a *Agent) Start() error {
	if err := a.barred(); err != nil {
		return err
	}
	err := a.send()
	if a.gone != nil {
		return err
	}
	return errors.Join(a.reportUnfit(), err)
}

// send creates the scheduled children. Its error has each child that is refused.
func (a *Agent) send() error {
	// Payloads may depend on Rand or Now: a replay must get the same, so the entries are written first.
	if err := a.write(); err != nil || len(a.unsent) == 0 {
		return err
	}
	why, all := map[string]error{}, []error{}
	refuse := func(id string, err error) {
		why[id] = &queue.ChildError{ID: id, Err: err}
		all = append(all, why[id])
	}
	for i := range a.unsent { // with an invalid task EnqueueAll would refuse all of them
		if err := a.unsent[i].Check(a.q.MaxBytes()); err != nil {
			refuse(a.unsent[i].ID, err)
		}
	}
	a.forget(why)
	receipts, err := a.q.EnqueueAll(a, a.unsent)
	if err != nil {
		return errors.Join(append(all, a.trouble(err))...)
	}
	sent := a.unsent
	a.unsent = nil
	for i, r := range receipts {
		if r.Err == nil {
			continue
		}
		if end := a.endedBy(&sent[i], r.Err); end != nil {
			return end
		}
		refuse(sent[i].ID, r.Err)
	}
	a.forget(why)
	return errors.Join(all...)
}

// refused forgets a refused child, and returns the error of the agent for it.
func (a *Agent) refused(id string, err error) error {
	if i := slices.IndexFunc(a.unsent, func(t queue.Task) bool { return t.ID == id }); i >= 0 {
		if end := a.endedBy(&a.unsent[i], err); end != nil {
			return end
		}
	}
	a.forget(map[string]error{id: err})
	return a.trouble(err)
}

// endedBy returns an error if the refusal of a child means that the agent can do nothing more in this
// run, and otherwise nil.
func (a *Agent) endedBy(t *queue.Task, err error) error {
	switch {
	case errors.Is(err, refusal.ErrOwnerEnded):
		return a.trouble(fmt.Errorf("%w: %w", refusal.ErrNotHeld, err))
	case errors.Is(err, refusal.ErrConflict) && !isSignal(nameOf(t.ID)):
		return a.childDiverged(t)
	}
	return nil
}

// forget removes refused children as if they had never been scheduled. A later wait for such a child
// returns its error.
func (a *Agent) forget(why map[string]error) {
	if len(why) == 0 {
		return
	}
	for id, err := range why {
		if c := a.scheduled[id]; c != nil {
			c.err, c.reported = err, true
		}
		delete(a.named, nameOf(id))
	}
	refused := func(t queue.Task) bool { return why[t.ID] != nil }
	a.unsent = slices.DeleteFunc(a.unsent, refused)
	a.since = slices.DeleteFunc(a.since, refused)
	a.made = newDigest()
	for i := range a.since {
		digestChild(a.made, &a.since[i])
	}
}

// unreported returns the children that could not be scheduled and whose error no call has returned.
func (a *Agent) unreported() (all []*child) {
	for _, c := range a.unfit {
		if !c.reported {
			all = append(all, c)
		}
	}
	return all
}

// reportUnfit returns the errors of the children that could not be scheduled, each once.
func (a *Agent) reportUnfit() error {
	var all []error
	for _, c := range a.unreported() {
		c.reported = true
		all = append(all, &queue.ChildError{ID: c.id, Err: c.err})
	}
	return errors.Join(all...)
}
