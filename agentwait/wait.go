package agentwait

import (
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Wait adjusts a wait: agentwait.JoinAll(a.With(agentwait.Wait{Limit: time.Minute}), …).
// The zero value is what an Agent alone stands for.
type Wait struct {
	// Limit is how long it may take. It is kept by the server, so nothing has to be alive
	// for it. 0: no limit, but those of the agent and the members.
	Limit time.Duration
	// Computed makes the limit of what the members' own times are: the longest of them,
	// times the number of members, times 1.5; half an hour at the most, and if none has any.
	Computed bool
	// FromFirst has the limit begin with the first member's end.
	FromFirst bool
	// Proceed has a wait that came to its limit go on with what has completed. Otherwise
	// it is a *WaitTimeoutError.
	Proceed bool
	// KeepPending leaves members alone that have not ended at the limit. Otherwise they
	// are cancelled.
	KeepPending bool
	// Losers are the members that nobody needs any more, once the wait is decided before
	// its limit. "" leaves it to the function: Select cancels them, the others keep them.
	Losers Losers
	// FailFast ends JoinAll with the first failure, where otherwise the last member does.
	FailFast bool
	// ContinueOn are endings of members that count as done, besides completion.
	ContinueOn Ending
	// SkipCancelled has cancelled members count as neither done nor failed. It is nothing to
	// JoinN, of which each takes one away that could complete.
	SkipCancelled bool
	// MaxMembers is how many members it may have. Defaults to 10,000.
	MaxMembers int
}

// Losers says what becomes of the members that nobody needs any more.
type Losers string

// They are cancelled, in order of their priority, 3 first, or go on.
const (
	CancelLosers Losers = "cancel"
	KeepLosers   Losers = "keep"
)

// Ending is a set of ways for a task to end.
type Ending uint8

// The ways to end without a result. OnFailed is a failure for good (worker.Discard), and a
// run that failed because its time was up (queue.DeadlineFail).
const (
	OnError Ending = 1 << iota
	OnFailed
	OnTimeout
	OnCancel
)

// Waiter is who waits: an Agent, or what its With gives.
type Waiter interface {
	waiter() (*Agent, Wait)
}

func (a *Agent) waiter() (*Agent, Wait) { return a, Wait{} }

type adjusted struct {
	agent *Agent
	wait  Wait
}

func (w adjusted) waiter() (*Agent, Wait) { return w.agent, w.wait }

// With is the agent in a wait that is adjusted.
func (a *Agent) With(w Wait) Waiter { return adjusted{a, w} }

// mask is what each way to end counts as.
func (w *Wait) mask(more Ending) string {
	m := []byte("obbbb")
	if w.SkipCancelled {
		m[4] = 'n'
	}
	for i := range 4 {
		if (w.ContinueOn|more)&(1<<i) != 0 {
			m[i+1] = 'o'
		}
	}
	return string(m)
}

// check refuses what cannot be meant.
func (w *Wait) check() error {
	switch {
	case w.Limit < 0:
		return fmt.Errorf("%w: the limit of a wait, %v, must not be negative", queue.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Limit < time.Millisecond:
		return fmt.Errorf("%w: the limit of a wait, %v, is under 1ms, the finest that is kept", queue.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Computed:
		return fmt.Errorf("%w: set Limit or Computed of a wait, not both", queue.ErrInvalid)
	case w.FromFirst && w.Limit == 0 && !w.Computed:
		return fmt.Errorf("%w: FromFirst needs a Limit, or Computed", queue.ErrInvalid)
	case w.MaxMembers < 0:
		return fmt.Errorf("%w: MaxMembers, %d, must not be negative", queue.ErrInvalid, w.MaxMembers)
	}
	switch w.Losers {
	case "", CancelLosers, KeepLosers:
		return nil
	}
	return fmt.Errorf("%w: Losers, %q, must be CancelLosers or KeepLosers", queue.ErrInvalid, w.Losers)
}

// ask is one wait of an agent.
type ask struct {
	agent   *Agent
	policy  Wait
	mode    queue.Mode
	need    int
	members []Awaitable
}

// run comes to the answer of a wait: from the journal in a replay, otherwise from Redis,
// at once or, by way of ErrSuspended, in a later run.
func (k *ask) run() (*result, error) {
	a := k.agent
	if a.gone != nil {
		return nil, a.gone
	}
	w, err := k.wait()
	if err != nil {
		return nil, err
	}
	number, entry, ok := a.remembered()
	w.Entry = number
	if ok {
		o, isWait := queue.ReadWaitOutcome(entry)
		if !isWait {
			return nil, a.diverged(what(entry), "a wait for "+w.Label)
		}
		if o.Digest != w.Digest {
			return nil, a.waitDiverged(o.Label, w)
		}
	} else if entry, err = k.suspend(w); err != nil {
		return nil, err
	}
	a.unsent, a.since, a.made = nil, nil, newDigest()
	o, _ := queue.ReadWaitOutcome(entry)
	return k.read(o, w)
}

// wait is the wait as Redis gets it.
func (k *ask) wait() (*queue.Wait, error) {
	p := &k.policy
	if err := p.check(); err != nil {
		return nil, err
	}
	w := &queue.Wait{
		Mode: k.mode, Need: k.need, Limit: p.Limit, Computed: p.Computed, FromFirst: p.FromFirst, Proceed: p.Proceed,
		KeepLate: p.KeepPending, DropLosers: p.Losers == CancelLosers, Mask: p.mask(0), Most: p.MaxMembers,
	}
	if k.mode == queue.WaitNOfM {
		p.SkipCancelled = false // one that was cancelled is one less that can complete
		w.Mask = p.mask(0)
	}
	seen := map[string]bool{}
	var names []string
	for i, m := range k.members {
		c, patience, more := m.member()
		switch {
		case c.err != nil:
			return nil, fmt.Errorf("member %d: %w", i, c.err)
		case c.agent != k.agent.job.ID:
			return nil, fmt.Errorf("member %d: %w: %s", i, ErrNotOwner, c.id)
		case patience < 0:
			return nil, fmt.Errorf("member %d: %w: its limit, %v, must not be negative", i, queue.ErrInvalid, patience)
		case seen[c.id]:
			continue // counted once, and reported in each of its places
		}
		seen[c.id] = true
		names = append(names, c.name())
		member := queue.Member{ID: c.id, Patience: patience}
		if more != 0 {
			member.Mask = p.mask(more)
		}
		w.Members = append(w.Members, member)
	}
	most := p.MaxMembers
	if most == 0 {
		most = maxMembers
	}
	switch n := len(w.Members); {
	case n > most:
		return nil, fmt.Errorf("%w: the wait has %d members, the limit is %d: wait for groups of them, or raise Wait.MaxMembers", queue.ErrInvalid, n, most)
	case (k.mode == queue.WaitNOfM || k.mode == queue.WaitNSettled) && (k.need < 0 || k.need > n):
		return nil, fmt.Errorf("%w: %d of %d different tasks cannot be waited for: it must be 0 to %d", queue.ErrInvalid, k.need, n, n)
	}
	w.Label = label(k.mode, k.need, names)
	w.Digest = k.agent.digestOf(w)
	return w, nil
}

// label says a wait to people.
func label(mode queue.Mode, need int, names []string) string {
	list := strings.Join(names[:min(len(names), 20)], " ")
	if len(names) > 20 {
		list += " …"
	}
	return fmt.Sprintf("%s of %d (%s)", strings.Replace(string(mode), "n_", fmt.Sprintf("%d_", need), 1), len(names), list)
}

// maxMembers is Wait.MaxMembers by default.
const maxMembers = 10_000

const (
	together      = 500     // children that a suspension may bring along
	togetherBytes = 3 << 20 // and about how many bytes
)

// suspend hands the wait over, with the children that it is for. Children that are too
// many or too large for one call go ahead.
func (k *ask) suspend(w *queue.Wait) (string, error) {
	a := k.agent
	size := 0
	for i := range a.unsent {
		size += 300 + len(a.unsent[i].Payload)
	}
	if len(a.unsent) > together || size > togetherBytes {
		if err := a.Start(); err != nil {
			return "", err
		}
	}
	entry, err := a.q.Suspend(a, queue.Suspension{
		Agent: a.job.ID, Epoch: a.job.Epoch, Worker: a.job.Worker, Wait: *w, Note: a.note, Children: a.unsent,
	})
	if err != nil {
		return "", k.refused(err)
	}
	a.note = queue.Note{}
	if entry == "" {
		a.gone = ErrSuspended
		return "", ErrSuspended
	}
	return entry, nil
}
