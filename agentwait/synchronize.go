package agentwait

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Sync configures Synchronize: the number of branches to wait for, the timeout, and the merge of the
// results. The zero value waits for all branches.
type Sync struct {
	// With Any, Synchronize waits for the first branch that completes; with M, for the Mth. With
	// neither, it waits until all branches have ended. Set Any or M, not both.
	Any bool
	M   int
	// Timeout counts from the end of the first branch. With 0 it is computed from the limits of the
	// branches (Wait.Computed). With NoTimeout the wait has no limit.
	Timeout time.Duration
	// Proceed makes Synchronize continue at the timeout with the branches that have completed.
	// If none has, or without Proceed, a timeout is an error.
	Proceed bool
	Merge   Merge
}

// NoTimeout is the Sync.Timeout for no timeout.
const NoTimeout time.Duration = -1

// The reasons in a *WaitTimeoutError, with Proceed and for a Sync without Proceed.
const (
	noneCompleted = "No siblings completed before timeout"
	syncExceeded  = "Synchronization timeout exceeded"
)

// Synchronize waits for branches, and returns the merged results of the branches that have
// completed. Branches that are not needed continue, and their results are dropped. A branch whose
// end ContinueOn excuses counts as completed, and has no result to merge.
//
// At the timeout Synchronize returns a *WaitTimeoutError. If no branch completes, it returns an
// *AllTasksFailedError. If fewer than M can still complete, it returns a *WaitImpossibleError.
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
	k := newWaitCall(a.With(wait), mode, s.M, branches)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	switch late, impossibleWait := timeoutError(k, r, syncExceeded, completedOrExcused[json.RawMessage]), r.outcome.Reason == "impossible"; {
	case late != nil:
		return nil, late
	case impossibleWait && s.M > 0:
		return nil, impossible[json.RawMessage](k, r)
	case impossibleWait || len(branches) > 0 && !anyEnded(k, r, completedOrExcused[json.RawMessage]):
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
