package agentwait

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// Wait adjusts a wait: agentwait.JoinAll(a.With(agentwait.Wait{Limit: time.Minute}), …).
// The zero value is the default: it adjusts nothing.
type Wait struct {
	// Limit is the longest time that the wait takes. The server enforces it, so it holds even when
	// the agent's worker does not run. With 0, only the limits of the agent and the members apply.
	Limit time.Duration
	// Computed derives the limit from the limits of the members: 1.5 × longest time of a member ×
	// number of members, and 30 minutes at most. If no member has a limit, it is 30 minutes.
	Computed bool
	// FromFirst starts the limit when the first member ends.
	FromFirst bool
	// From starts the limit at this instant, on the clock of Redis. It may be in the past.
	From time.Time
	// Proceed makes a wait that reaches its limit continue with the members that have
	// completed. If none has, the wait returns a *WaitTimeoutError, as without Proceed, even if
	// ContinueOn or SkipCancelled excuse how members ended. JoinAllSettled and JoinNSettled
	// continue in any case. Select and SelectOK ignore Proceed.
	Proceed bool
	// KeepPending lets members that have not ended at the limit continue. By default they are
	// cancelled.
	KeepPending bool
	// Losers selects what happens to the remaining members when the wait is decided before its
	// limit. By default Select cancels them, and the other functions let them continue.
	Losers Losers
	// FailFast makes JoinAll return at the first failure instead of the last end.
	FailFast bool
	// ContinueOn is the set of endings that count as done, besides completion.
	ContinueOn Ending
	// SkipCancelled makes cancelled members count as neither done nor failed. JoinN ignores it:
	// a cancelled member can no longer complete.
	SkipCancelled bool
	// Clamp makes JoinN and JoinNSettled wait for all members if n is larger than their number.
	// By default such an n is refusal.ErrInvalid.
	Clamp bool
	// Reason describes for people why the agent waits, in up to 1024 bytes; inspect.Explain shows
	// it. The default depends on the function, for example "Waiting for all tasks to settle". A
	// replay can use another text.
	Reason string
	// MaxMembers is the greatest number of members. Defaults to 10,000.
	MaxMembers int
}

// Losers selects what happens to members that a wait no longer needs.
type Losers string

// CancelLosers cancels the members, in the order of their priority. KeepLosers lets them continue
// until the agent ends, because then all its children end.
const (
	CancelLosers Losers = "cancel"
	KeepLosers   Losers = "keep"
)

// Ending is a set of ways in which a task can end.
type Ending uint8

// The ways to end without a result. OnFailed is a failure without a retry (worker.Discard), and a
// timeout of a run with queue.DeadlineFail.
const (
	OnError Ending = 1 << iota
	OnFailed
	OnTimeout
	OnCancel
)

// Waiter is an Agent, or the value that its method With returns.
type Waiter interface {
	waiter() (*Agent, Wait)
}

func (a *Agent) waiter() (*Agent, Wait) { return a, Wait{} }

// adjusted is an agent with a policy for its waits.
type adjusted struct {
	agent *Agent
	wait  Wait
}

func (w adjusted) waiter() (*Agent, Wait) { return w.agent, w.wait }

// With returns a Waiter for the agent whose waits are adjusted by w.
func (a *Agent) With(w Wait) Waiter { return adjusted{a.mustAgent(), w} }

// mask returns the letters of claim.Wait.Mask: for each kind of end, o for ok, b for bad, or n for
// neither.
func (w *Wait) mask(continueOn Ending) string {
	m := []byte("obbbb")
	if w.SkipCancelled {
		m[4] = 'n'
	}
	for i := range 4 {
		if (w.ContinueOn|continueOn)&(1<<i) != 0 {
			m[i+1] = 'o'
		}
	}
	return string(m)
}

// check returns an error if the Wait is invalid.
func (w *Wait) check() error {
	switch {
	case w.Limit < 0:
		return fmt.Errorf("%w: the limit of a wait, %v, must not be negative", refusal.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Limit < time.Millisecond:
		return fmt.Errorf("%w: the limit of a wait, %v, must be at least 1ms", refusal.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Computed:
		return fmt.Errorf("%w: set Limit or Computed of a wait, not both", refusal.ErrInvalid)
	case w.FromFirst && w.Limit == 0 && !w.Computed:
		return fmt.Errorf("%w: FromFirst needs a Limit, or Computed", refusal.ErrInvalid)
	case !w.From.IsZero() && (w.Limit == 0 || w.FromFirst):
		return fmt.Errorf("%w: From needs a Limit, and no FromFirst", refusal.ErrInvalid)
	case len(w.Reason) > 1024:
		return fmt.Errorf("%w: the reason of a wait has %d bytes, the limit is 1024", refusal.ErrInvalid, len(w.Reason))
	case w.MaxMembers < 0:
		return fmt.Errorf("%w: MaxMembers, %d, must not be negative", refusal.ErrInvalid, w.MaxMembers)
	}
	switch w.Losers {
	case "", CancelLosers, KeepLosers:
		return nil
	}
	return fmt.Errorf("%w: Losers, %q, must be CancelLosers or KeepLosers", refusal.ErrInvalid, w.Losers)
}
