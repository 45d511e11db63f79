package worker

import (
	"context"
	"time"
)

// bound is an instant at which a context ends, and its cause.
type bound struct {
	at    time.Time // zero: no bound
	cause error
}

// limit returns a context that ends at the earliest bound. Without a bound it returns parent itself,
// and allocates nothing. Call cancel as soon as the handler has returned, because it releases the
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

// local converts an instant of the clock of Redis to the local clock, because the two can differ.
// The reply with now arrived at received, so local takes both as the same instant.
func local(at, now, received time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return received.Add(at.Sub(now))
}

// past returns the first millisecond after a deadline. The context must not end earlier, because
// Redis still accepts a report in the millisecond of the deadline.
func past(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(time.Millisecond)
}
