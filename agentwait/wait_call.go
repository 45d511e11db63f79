package agentwait

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// waitCall is a call of a function that waits: its members and its policy.
type waitCall struct {
	agent   *Agent
	policy  Wait
	mode    queue.Mode
	need    int
	members []Awaitable
}

// run returns the result of the wait. In a replay the result is in the journal. Otherwise Redis
// returns it at once, or suspends the agent. Then run returns ErrSuspended, and a later run of the
// agent finds the result in the journal.
func (k *waitCall) run() (*result, error) {
	a := k.agent
	if err := a.stopped(); err != nil {
		return nil, err
	}
	w, err := k.wait()
	if err != nil {
		return nil, err
	}
	number, entry, ok := a.nextEntry()
	w.Entry = number
	var o *queue.WaitOutcome
	if ok {
		o, err = k.replay(entry, w)
	} else {
		o, err = k.suspend(w)
	}
	if err != nil {
		return nil, err
	}
	if o.Reason == stillOpen {
		return nil, a.suspended() // a rehearsal has come to the wait of the recording
	}
	a.unsent, a.recent, a.digest = nil, nil, newDigest()
	r, err := k.result(*o, w)
	if err == nil {
		a.traceWait(string(w.Mode), o)
	}
	return r, err
}

// replay returns the outcome of this wait from an entry of the journal. It returns an error if the
// entry belongs to another call, or if the wait was refused.
func (k *waitCall) replay(entry string, w *claim.Wait) (*queue.WaitOutcome, error) {
	a := k.agent
	if o, ok := queue.ReadWaitOutcome(entry); ok {
		if o.Digest != w.Digest {
			if err := a.matchWait(&o, w); err != nil {
				return nil, err
			}
		}
		return &o, nil
	}
	r, ok := readRefusal(entry)
	switch {
	case !ok || r.digest == cancelDigest:
		return nil, a.diverged(describeEntry(entry), "a wait for "+w.Label)
	case r.digest != w.Digest:
		return nil, a.waitDiverged(r.label, r.digest, w)
	}
	if a.needsSend() {
		a.unsent = nil // the earlier run created these children before the wait was refused
	}
	return nil, a.refusedAgain(r)
}

// wait returns the wait in the form that Redis gets, or an error if it is invalid.
func (k *waitCall) wait() (*claim.Wait, error) {
	if k.agent == nilAgent {
		return nil, errNilAgent
	}
	p := &k.policy
	if err := p.check(); err != nil {
		return nil, err
	}
	w := &claim.Wait{
		Mode: k.mode, Need: k.need, Limit: p.Limit, Computed: p.Computed, FromFirst: p.FromFirst, From: p.From, Proceed: p.Proceed,
		KeepPending: p.KeepPending, CancelLosers: p.Losers == CancelLosers, Mask: p.mask(0), MaxMembers: p.MaxMembers,
	}
	if k.mode == queue.WaitNOfM {
		p.SkipCancelled = false // a cancelled member cannot complete
		w.Mask = p.mask(0)
	}
	names, err := k.list(w)
	if err != nil {
		return nil, err
	}
	limit := p.MaxMembers
	if limit == 0 {
		limit = maxMembers
	}
	if p.Clamp {
		k.need = min(k.need, len(w.Members))
		w.Need = k.need
	}
	switch n := len(w.Members); {
	case n > limit:
		return nil, fmt.Errorf("%w: the wait has %d members, the limit is %d: wait for groups of them, or raise Wait.MaxMembers", refusal.ErrInvalid, n, limit)
	case (k.mode == queue.WaitNOfM || k.mode == queue.WaitNSettled) && (k.need < 0 || k.need > n):
		return nil, fmt.Errorf("%w: cannot wait for %d of %d different tasks: n must be 0 to %d", refusal.ErrInvalid, k.need, n, n)
	}
	w.Label, w.Reason = label(k.mode, k.need, names), cmp.Or(p.Reason, reasons[k.mode])
	w.Digest = k.agent.digestOf(w)
	return w, nil
}

// list sets the members of the wait, and returns their names. A task that is passed several times is
// one member, and is reported in each of its places.
func (k *waitCall) list(w *claim.Wait) (names []string, err error) {
	if err := k.agent.checkFutures("member", k.members); err != nil {
		return nil, err
	}
	first := map[string]int{}
	for i, m := range k.members {
		c, patience, continueOn := m.member()
		switch {
		case patience < 0:
			return nil, fmt.Errorf("member %d: %w: its limit, %v, must not be negative", i, refusal.ErrInvalid, patience)
		case patience > 0 && isSignal(c.name()):
			return nil, fmt.Errorf("member %d: %w: a signal cannot have Within, since no wait cancels a signal: use Wait.Limit, "+
				"or Select the signal and a Timer task", i, refusal.ErrInvalid)
		}
		if place, seen := first[c.id]; seen {
			if _, p, e := k.members[place].member(); p != patience || e != continueOn {
				return nil, fmt.Errorf("member %d: %w: %s is also member %d, with another Within or ContinueOn: use the same in each place", i, refusal.ErrInvalid, c.id, place)
			}
			continue
		}
		first[c.id] = i
		names = append(names, c.name())
		member := claim.Member{ID: c.id, Patience: patience}
		if continueOn != 0 {
			member.Mask = k.policy.mask(continueOn)
		}
		w.Members = append(w.Members, member)
	}
	return names, nil
}

// maxLabelNames is the greatest number of members that a label names.
const maxLabelNames = 20

// label returns a short description of a wait for people, such as "all of 2 (1 2)".
func label(mode queue.Mode, need int, names []string) string {
	list := strings.Join(names[:min(len(names), maxLabelNames)], " ")
	if len(names) > maxLabelNames {
		list += " …"
	}
	return fmt.Sprintf("%s of %d (%s)", strings.Replace(string(mode), "n_", fmt.Sprintf("%d_", need), 1), len(names), list)
}

// reasons holds the default of Wait.Reason for each mode.
var reasons = map[queue.Mode]string{
	queue.WaitAll: "Waiting for all tasks to complete", queue.WaitFailFast: "Waiting for all tasks to complete",
	queue.WaitSettled: "Waiting for all tasks to settle", queue.WaitAny: "Waiting for first task", queue.WaitAnyOK: "Waiting for successful task",
	queue.WaitCollect: "Waiting for the next task to end",
	queue.WaitNOfM:    "Waiting for successful tasks", queue.WaitNSettled: "Waiting for tasks to settle",
}

// maxMembers is the default of Wait.MaxMembers.
const maxMembers = 10_000

const (
	maxWithWait      = 500     // the most children that the call of a wait creates
	maxWithWaitBytes = 3 << 20 // and the approximate limit of their payloads together
)

// needsSend reports whether the scheduled children are too many or too large for the call of a wait.
// Then they are created before it.
func (a *Agent) needsSend() bool {
	size := 0
	for i := range a.unsent {
		size += 300 + len(a.unsent[i].Payload)
	}
	return len(a.unsent) > maxWithWait || size > maxWithWaitBytes
}

// suspend sends the wait to Redis, with the children that were scheduled before it.
func (k *waitCall) suspend(w *claim.Wait) (*queue.WaitOutcome, error) {
	a := k.agent
	a.unsent, a.added = append(a.added, a.unsent...), nil
	if a.needsSend() {
		if err := a.send(); err != nil {
			return nil, a.recordRefusal(w.Entry, w.Digest, w.Label, err)
		}
	}
	o, err := claim.Of(a.q).Suspend(a, claim.Suspension{
		Agent: a.job.ID, Epoch: a.job.Epoch, Worker: a.job.Worker, Wait: *w, Note: a.note, Children: a.unsent,
	})
	if err != nil {
		return nil, a.recordRefusal(w.Entry, w.Digest, w.Label, k.refused(err))
	}
	a.note = claim.Note{}
	if o == nil {
		return nil, a.suspended()
	}
	return o, nil
}
