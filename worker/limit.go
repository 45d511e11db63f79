package worker

import (
	"context"
	"time"
)

// bound is an instant at which a context ends, and the cause.
type bound struct {
	at    time.Time // zero: no bound
	cause error
}

// limit returns a context that ends at the first of the bounds. Without a bound it returns parent
// itself, and allocates nothing. Call cancel as soon as the handler has returned: it releases the
// timer.
func limit(parent context.Context, bounds ...bound) (ctx context.Context, cancel context.CancelFunc) {
	var first bound
	for _, b := range bounds {
		if !b.at.IsZero() && (first.at.IsZero() || b.at.Before(first.at)) {
			first = b
		}
	}
	if first.at.IsZero() {
		return parent, func() {}
	}
	return context.WithDeadlineCause(parent, first.at, first.cause)
}

// local converts an instant of the clock of Redis to the local clock. The reply with now came at
// received, so both count as the same instant. The two clocks can differ.
func local(at, now, received time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return received.Add(at.Sub(now))
}

// past returns the first millisecond after a deadline. In the millisecond of its deadline a task is
// still alive: Redis would accept what a handler reported then.
func past(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(time.Millisecond)
}
