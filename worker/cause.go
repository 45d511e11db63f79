package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
)

// The causes for which the context of a handler ends. Test them with errors.Is(context.Cause(ctx), …).
var (
	// ErrTimeout means that a time limit has passed. ErrDeadline, ErrAttemptTimeout and
	// ErrTaskTimeout match it with errors.Is, and all four match context.DeadlineExceeded.
	ErrTimeout error = &timeout{"task timed out"}
	// ErrDeadline means that the task's deadline has passed, or the deadline of its owner. The task
	// has failed, and Redis refuses the handler's result. For a task with a TimeoutGrace the context
	// ends earlier, at the beginning of the grace, and Redis accepts a result until the deadline.
	ErrDeadline error = &timeout{"task exceeded its deadline"}
	// ErrAttemptTimeout means that the attempt has run for the task's AttemptTimeout, or that
	// the TimeoutGrace before the end of it has begun.
	ErrAttemptTimeout error = &timeout{"attempt exceeded the task's attempt timeout"}
	// ErrTaskTimeout means that the handler ran for Config.TaskTimeout.
	ErrTaskTimeout error = &timeout{"handler exceeded the worker's task timeout"}

	// ErrShutdown means that the worker's ShutdownTimeout has passed. If the handler then
	// returns an error, its task is given back.
	ErrShutdown = errors.New("worker is shutting down")
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = refusal.ErrCancelled
	// ErrClaimLost means that the task no longer belongs to this attempt. The task may be
	// running elsewhere: drop the result.
	ErrClaimLost = errors.New("claim lost")
)

// errDeadlineNear is the cause at the beginning of the task's TimeoutGrace. It matches ErrDeadline.
var errDeadlineNear error = &nearDeadline{timeout{"task is about to exceed its deadline"}}

type nearDeadline struct{ timeout }

func (n *nearDeadline) Is(target error) bool { return target == ErrDeadline || n.timeout.Is(target) }

type timeout struct{ text string }

func (t *timeout) Error() string { return t.text }
func (t *timeout) Timeout() bool { return true }
func (t *timeout) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// stopCause returns the cause for the reason of a stop, except for a timeout.
func stopCause(reason string) error {
	switch reason {
	case "cancelled", "cancelling":
		return ErrCancelled
	case "owner_ended":
		return fmt.Errorf("%w: its owner has ended", ErrCancelled)
	}
	return fmt.Errorf("%w: %s", ErrClaimLost, reason)
}
