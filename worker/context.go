package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// What ends a handler's context: errors.Is(context.Cause(ctx), …).
var (
	// ErrTimeout is every end by time; the three that follow are ErrTimeout too, and
	// all are context.DeadlineExceeded.
	ErrTimeout error = &timeout{"task timed out"}
	// ErrDeadline means that the task's own deadline has passed. It has failed, and
	// whatever the handler returns is refused.
	ErrDeadline error = &timeout{"task exceeded its deadline"}
	// ErrAttemptTimeout means that the attempt took longer than the task allows.
	ErrAttemptTimeout error = &timeout{"attempt exceeded the task's attempt timeout"}
	// ErrTaskTimeout means that the handler ran for Config.TaskTimeout.
	ErrTaskTimeout error = &timeout{"handler exceeded the worker's task timeout"}

	// ErrShutdown means that the worker's ShutdownTimeout is over. A handler that
	// returns an error now has its task given back.
	ErrShutdown = errors.New("worker is shutting down")
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = refusal.ErrCancelled
	// ErrClaimLost means that the task is no longer this attempt's. It may be running
	// elsewhere: drop the result.
	ErrClaimLost = errors.New("claim lost")
)

type timeout struct{ text string }

func (t *timeout) Error() string { return t.text }
func (t *timeout) Timeout() bool { return true }
func (t *timeout) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// stopCause turns the reason of a stop, as Redis gives it, into a cause.
func stopCause(reason string) error {
	switch reason {
	case "timeout":
		return ErrTimeout
	case "cancelled", "cancelling":
		return ErrCancelled
	case "owner_ended":
		return fmt.Errorf("%w: its owner has ended", ErrCancelled)
	}
	return fmt.Errorf("%w: %s", ErrClaimLost, reason)
}

// bound is an instant at which a context ends, and why.
type bound struct {
	at    time.Time // zero: no bound
	cause error
}

// limit bounds a context by the first of the limits. If there is none it is root
// itself, unchanged, and nothing is allocated. Call cancel as soon as the handler
// has returned: it releases the timer.
func limit(root context.Context, limits ...bound) (ctx context.Context, cancel context.CancelFunc) {
	var first bound
	for _, l := range limits {
		if !l.at.IsZero() && (first.at.IsZero() || l.at.Before(first.at)) {
			first = l
		}
	}
	if first.at.IsZero() {
		return root, func() {}
	}
	return context.WithDeadlineCause(root, first.at, first.cause)
}

// local moves an instant of the server's clock to ours: what is left of it counts
// from the moment the answer came, so the two clocks may differ as they like.
func local(at, now, received time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return received.Add(at.Sub(now))
}

// past is the first instant at which what is due at another is out of time. At its
// deadline a task is alive: a handler that reported then would be believed.
func past(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(time.Millisecond)
}
