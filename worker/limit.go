package worker

import (
	"context"
	"time"
)

// bound is when a context ends, and why.
type bound struct {
	at    time.Time // zero: no bound
	cause error
}

// limit returns a context that ends at the first of the bounds. Without a bound it is
// parent itself, and nothing is allocated. Call cancel as soon as the handler has
// returned: it releases the timer.
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

// local returns an instant of Redis's clock by the local one. The time left until it
// counts from when the reply came, so the two clocks may differ.
func local(at, now, received time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return received.Add(at.Sub(now))
}

// past returns the first instant after a deadline. At its deadline a task is still alive:
// Redis would accept what a handler reported then.
func past(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(time.Millisecond)
}
