package agentwait

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/refusal"
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
	// it is a *WaitTimeoutError, and so it is if no member has COMPLETED, whatever ContinueOn
	// and SkipCancelled excuse, but where outcomes are what is asked for (JoinAllSettled,
	// JoinNSettled). It is nothing to Select and SelectOK.
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
	// Clamp has JoinN and JoinNSettled take an n that is larger than the number of members
	// for all of them. Otherwise it is a refusal.ErrInvalid.
	Clamp bool
	// Reason says to people why the agent waits, in up to 1024 bytes: Explain shows it. "" leaves it to the function:
	// "Waiting for all tasks to settle", "Waiting for successful task" and the like. A replay may have another.
	Reason string
	// MaxMembers is how many members it may have. Defaults to 10,000.
	MaxMembers int
}

// Losers says what becomes of the members that nobody needs any more.
type Losers string

// They are cancelled, in order of their priority, 3 first, or go on until the agent
// returns, with which its children end.
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
func (a *Agent) With(w Wait) Waiter { return adjusted{a.given(), w} }

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
		return fmt.Errorf("%w: the limit of a wait, %v, must not be negative", refusal.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Limit < time.Millisecond:
		return fmt.Errorf("%w: the limit of a wait, %v, is under 1ms, the finest that is kept", refusal.ErrInvalid, w.Limit)
	case w.Limit > 0 && w.Computed:
		return fmt.Errorf("%w: set Limit or Computed of a wait, not both", refusal.ErrInvalid)
	case w.FromFirst && w.Limit == 0 && !w.Computed:
		return fmt.Errorf("%w: FromFirst needs a Limit, or Computed", refusal.ErrInvalid)
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
