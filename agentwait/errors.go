package agentwait

import (
	"context"
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

var (
	// ErrSuspended is returned by a wait when the agent has given up its worker until the wait is
	// over. The handler must return ErrSuspended; it is called again later. If the handler returns
	// something else, it is dropped, and the agent cannot do anything more in this run.
	ErrSuspended = worker.ErrSuspended
	// ErrNotOwner means that a task is not a child of this agent.
	ErrNotOwner = refusal.ErrNotOwner
	// ErrReplayDiverged means that a run of the handler made other calls than the run before.
	// The agent is given back, and goes on when a worker takes it whose code can replay it. See
	// DivergedError.
	ErrReplayDiverged = refusal.ErrDiverged
	// ErrUnawaited means that the handler returned while scheduled children were not created
	// yet. The agent ends as FAILED.
	ErrUnawaited = errors.New("children were scheduled and never awaited")
	// ErrTaskCancelled means that a child was cancelled.
	ErrTaskCancelled = refusal.ErrCancelled
	// ErrTaskStillRunning means that a child has not ended, or had not ended when the wait was
	// decided.
	ErrTaskStillRunning = errors.New("task is still running")
)

// DivergedError reports a call of a run that differs from the call of an earlier run. errors.Is(err,
// ErrReplayDiverged) is true.
type DivergedError struct {
	Agent string // id of the agent
	Call  int64  // number of the call's entry in the journal; the first call of the agent's life is 1
	Was   string // the call of the earlier run
	Now   string // the call of this run
}

// Error describes both calls, and says how to change the code of a running agent.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%v: call %d of agent %s was %s, and is now %s. Each run of an agent must make the same calls: "+
		"give its children names, make a Checkpoint before the part that changes, or let a version field of its input choose between old and new code",
		ErrReplayDiverged, e.Call, e.Agent, e.Was, e.Now)
}

// Is reports whether target is ErrReplayDiverged.
func (e *DivergedError) Is(target error) bool { return target == ErrReplayDiverged }

// AllTasksFailedError is the error of a wait for one success whose tasks have all failed.
type AllTasksFailedError struct {
	First error   // the error of the first task that ended; never nil
	All   []error // the error of each task, in the order they ended
}

// Error begins with "All tasks failed".
func (e *AllTasksFailedError) Error() string { return fmt.Sprintf("All tasks failed: %v", e.First) }

// Unwrap returns the error of each task.
func (e *AllTasksFailedError) Unwrap() []error { return e.All }

// WaitTimeoutError is the error of a wait that reached its limit. Its lists hold the indexes of the
// members by their state at the limit: the members in Pending had not ended then, even if they have
// ended since.
type WaitTimeoutError struct {
	Reason                                string
	Completed, Failed, Cancelled, Pending []int
}

// Error returns the reason, and the number of members in each state.
func (e *WaitTimeoutError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "the wait took longer than its limit"
	}
	return fmt.Sprintf("Timeout: %s: %d completed, %d failed, %d cancelled, %d pending", reason,
		len(e.Completed), len(e.Failed), len(e.Cancelled), len(e.Pending))
}

// Timeout returns true.
func (e *WaitTimeoutError) Timeout() bool { return true }

// Is reports whether target is context.DeadlineExceeded.
func (e *WaitTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// WaitImpossibleError is the error of a wait for n successes when fewer than n tasks can still
// complete.
type WaitImpossibleError struct {
	Need     int   // n
	Possible int   // the number of tasks that have completed or could still complete
	First    error // the error of the first task that failed
}

// Error returns the number of tasks that must complete, the number that can, and the first error.
func (e *WaitImpossibleError) Error() string {
	return fmt.Sprintf("%d tasks must complete, and at most %d can: %v", e.Need, e.Possible, e.First)
}

// Unwrap returns the error of the first task that failed.
func (e *WaitImpossibleError) Unwrap() error { return e.First }
