package agentwait

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Sync is a point where branches meet: when it is passed, what happens if they do not all
// come, and what is made of their results. The zero value waits for all of them.
type Sync struct {
	// Any passes with the first branch that completes, M with the Mth. Neither: when all
	// have ended.
	Any bool
	M   int
	// Timeout counts from the end of the first branch. 0: it is computed of the branches'
	// own times (Wait.Computed). NoTimeout: there is none.
	Timeout time.Duration
	// Proceed goes on at the timeout with what has completed, if anything has. Otherwise
	// that is an error.
	Proceed bool
	Merge   Merge
}

// NoTimeout is a Sync.Timeout that never comes.
const NoTimeout time.Duration = -1

// Why a wait that came to its limit does not go on: with Proceed, and a Sync without.
const (
	noneCompleted = "No siblings completed before timeout"
	syncExceeded  = "Synchronization timeout exceeded"
)

// Synchronize waits for branches as a Sync says, and merges the results of those that
// have completed. Branches that are not needed go on; what they come to is dropped.
// A timeout is a *WaitTimeoutError. If none completes it is an *AllTasksFailedError, if M
// cannot any more a *WaitImpossibleError. A branch whose ContinueOn excuses how it ended
// counts as one that completed, and has nothing to merge.
func Synchronize(a *Agent, s Sync, branches ...*Future[json.RawMessage]) (json.RawMessage, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	wait := Wait{Limit: s.Timeout, FromFirst: true, Proceed: s.Proceed, KeepPending: true, Losers: KeepLosers}
	if s.Timeout == 0 {
		wait.Computed = true
	} else if s.Timeout == NoTimeout {
		wait.Limit, wait.FromFirst = 0, false
	}
	mode := queue.WaitSettled
	switch {
	case s.Any:
		mode = queue.WaitAnyOK
	case s.M > 0:
		mode = queue.WaitNOfM
	}
	k := newAsk(a.With(wait), mode, s.M, branches)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	switch late, never := outOfTime(k, r, syncExceeded, completedOrExcused[json.RawMessage]), r.outcome.Reason == "impossible"; {
	case late != nil:
		return nil, late
	case never && s.M > 0:
		return nil, impossible[json.RawMessage](k, r)
	case never || len(branches) > 0 && !some(k, r, completedOrExcused[json.RawMessage]):
		return nil, allFailed[json.RawMessage](k, r)
	}
	return s.Merge.Of(settledOf[json.RawMessage](r))
}

func (s *Sync) check() error {
	switch {
	case s.Any && s.M != 0:
		return fmt.Errorf("%w: set Any or M of a Sync, not both", refusal.ErrInvalid)
	case s.M < 0:
		return fmt.Errorf("%w: M, %d, must not be negative", refusal.ErrInvalid, s.M)
	case s.Timeout < 0 && s.Timeout != NoTimeout:
		return fmt.Errorf("%w: the timeout, %v, must not be negative", refusal.ErrInvalid, s.Timeout)
	}
	return s.Merge.check()
}
