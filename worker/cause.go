package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
)

// Why the context of a handler ended: errors.Is(context.Cause(ctx), …).
var (
	// ErrTimeout means that time is up. The next three are ErrTimeout as well, and all
	// four are context.DeadlineExceeded.
	ErrTimeout error = &timeout{"task timed out"}
	// ErrDeadline means that the task's deadline, or that of the agent it belongs to, has passed. The task has failed, and
	// Redis refuses whatever the handler returns.
	ErrDeadline error = &timeout{"task exceeded its deadline"}
	// ErrAttemptTimeout means that the attempt took longer than the task allows.
	ErrAttemptTimeout error = &timeout{"attempt exceeded the task's attempt timeout"}
	// ErrTaskTimeout means that the handler ran for Config.TaskTimeout.
	ErrTaskTimeout error = &timeout{"handler exceeded the worker's task timeout"}

	// ErrShutdown means that the worker's ShutdownTimeout is over. If the handler returns
	// an error now, its task is given back.
	ErrShutdown = errors.New("worker is shutting down")
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = refusal.ErrCancelled
	// ErrClaimLost means that the task no longer belongs to this attempt. It may be
	// running elsewhere: drop the result.
	ErrClaimLost = errors.New("claim lost")
)

// errDeadlineNear is ErrDeadline too: the context ended at the beginning of the task's TimeoutGrace.
var errDeadlineNear error = &nearDeadline{timeout{"task is about to exceed its deadline"}}

type nearDeadline struct{ timeout }

func (n *nearDeadline) Is(target error) bool { return target == ErrDeadline || n.timeout.Is(target) }

type timeout struct{ text string }

func (t *timeout) Error() string { return t.text }
func (t *timeout) Timeout() bool { return true }
func (t *timeout) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// stopCause returns the cause for a reason that Redis gave, other than a timeout.
func stopCause(reason string) error {
	switch reason {
	case "cancelled", "cancelling":
		return ErrCancelled
	case "owner_ended":
		return fmt.Errorf("%w: its owner has ended", ErrCancelled)
	}
	return fmt.Errorf("%w: %s", ErrClaimLost, reason)
}
