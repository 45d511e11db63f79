package agentwait

import (
	"errors"
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Start makes the children that were scheduled, without a wait: 500 a round trip. Its
// error tells of each child that could not be scheduled or is refused, unless a call has
// told of it before; those are forgotten, and the others are there.
func (a *Agent) Start() error {
	if err := a.barred(); err != nil {
		return err
	}
	err := a.send()
	if a.gone != nil {
		return err
	}
	return errors.Join(a.tell(), err)
}

// send makes the children that were scheduled, and tells why some are not.
func (a *Agent) send() error {
	// What the children were made of by Rand or Now must be the same in a replay.
	if err := a.writeEntries(); err != nil || len(a.unsent) == 0 {
		return err
	}
	why, all := map[string]error{}, []error{}
	refuse := func(id string, err error) {
		why[id] = &queue.ChildError{ID: id, Err: err}
		all = append(all, why[id])
	}
	for i := range a.unsent { // EnqueueAll would refuse the others with one that cannot be
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

// refused makes of the refusal of a child what it means for the agent, and forgets it.
func (a *Agent) refused(id string, err error) error {
	if i := slices.IndexFunc(a.unsent, func(t queue.Task) bool { return t.ID == id }); i >= 0 {
		if end := a.endedBy(&a.unsent[i], err); end != nil {
			return end
		}
	}
	a.forget(map[string]error{id: err})
	return a.trouble(err)
}

// endedBy is the error of the agent, if the refusal of a child means that it can do
// nothing more in this run.
func (a *Agent) endedBy(t *queue.Task, err error) error {
	switch {
	case errors.Is(err, refusal.ErrOwnerEnded):
		return a.trouble(fmt.Errorf("%w: %w", refusal.ErrNotHeld, err))
	case errors.Is(err, refusal.ErrConflict) && !isSignal(nameOf(t.ID)):
		return a.childDiverged(t)
	}
	return nil
}

// forget has children be as if they had never been scheduled: they are refused. Who waits
// for one later is told why.
func (a *Agent) forget(why map[string]error) {
	if len(why) == 0 {
		return
	}
	for id, err := range why {
		if c := a.scheduled[id]; c != nil {
			c.err, c.told = err, true
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

// untold are the children that could not be scheduled, and of which no call has told.
func (a *Agent) untold() (all []*child) {
	for _, c := range a.unfit {
		if !c.told {
			all = append(all, c)
		}
	}
	return all
}

// tell tells of them.
func (a *Agent) tell() error {
	var all []error
	for _, c := range a.untold() {
		c.told = true
		all = append(all, &queue.ChildError{ID: c.id, Err: c.err})
	}
	return errors.Join(all...)
}
