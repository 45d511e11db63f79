package agentwait

import (
	"context"
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

var (
	// ErrSuspended is what a wait returns when the agent has given up its worker until the
	// wait is over. The handler must return it; it is called again then. One that does not
	// cannot do anything more, and what it returns is dropped.
	ErrSuspended = worker.ErrSuspended
	// ErrNotOwner means that a task is no child of this agent.
	ErrNotOwner = refusal.ErrNotOwner
	// ErrReplayDiverged means that the handler, called again, did something else than
	// before. The agent ends as FAILED. See DivergedError.
	ErrReplayDiverged = refusal.ErrDiverged
	// ErrUnawaited means that the handler returned while children that it had scheduled
	// were not started yet, or could not be scheduled and no call had told it so. The agent
	// ends as FAILED.
	ErrUnawaited = errors.New("children were scheduled and never awaited")
	// ErrTaskCancelled means that a child was cancelled.
	ErrTaskCancelled = refusal.ErrCancelled
	// ErrTaskStillRunning means that a child has not ended, or had not when the wait did.
	ErrTaskStillRunning = errors.New("task is still running")
)

// DivergedError says where the replay of an agent left what it had done before.
// errors.Is(err, ErrReplayDiverged) is true.
type DivergedError struct {
	Agent, Was, Now string
}

// Error says what the replay came to.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%v: agent %s had %s, and now has %s. An agent that is under way must do again what it did: "+
		"give its children names, make a Checkpoint before the part that changes, or let a version field of its input choose between old and new code",
		ErrReplayDiverged, e.Agent, e.Was, e.Now)
}

// Is makes it an ErrReplayDiverged.
func (e *DivergedError) Is(target error) bool { return target == ErrReplayDiverged }

// AllTasksFailedError is the end of a wait for a success that did not come.
type AllTasksFailedError struct {
	First error   // in the order they ended; never nil
	All   []error // likewise, one for each task
}

// Error begins with "All tasks failed".
func (e *AllTasksFailedError) Error() string { return fmt.Sprintf("All tasks failed: %v", e.First) }

// Unwrap returns what each task failed of.
func (e *AllTasksFailedError) Unwrap() []error { return e.All }

// WaitTimeoutError is the end of a wait whose limit passed. It lists its members by
// their places, and as they stood at the limit: Pending had not ended by then, whatever
// the wait or their own end has made of them since.
type WaitTimeoutError struct {
	Reason                                string
	Completed, Failed, Cancelled, Pending []int
}

// Error says which wait took too long.
func (e *WaitTimeoutError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "the wait took longer than its limit"
	}
	return fmt.Sprintf("Timeout: %s: %d completed, %d failed, %d cancelled, %d pending", reason,
		len(e.Completed), len(e.Failed), len(e.Cancelled), len(e.Pending))
}

// Timeout is true.
func (e *WaitTimeoutError) Timeout() bool { return true }

// Is makes it a context.DeadlineExceeded.
func (e *WaitTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// WaitImpossibleError is the end of a wait for n successes when so many could not come
// any more.
type WaitImpossibleError struct {
	Need, Possible int
	First          error // in the order they ended
}

// Error names the wait that can no longer be satisfied.
func (e *WaitImpossibleError) Error() string {
	return fmt.Sprintf("%d tasks had to complete, and no more than %d can: %v", e.Need, e.Possible, e.First)
}

// Unwrap returns what the first of them failed of.
func (e *WaitImpossibleError) Unwrap() error { return e.First }
