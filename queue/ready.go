package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// ready refuses a queue that Open did not return, and a context that is nil.
func (q *Queue) ready(ctx context.Context) error {
	if q == nil || q.engine == nil {
		return refusal.Invalid("queue", "is nil or empty: use one that Open returned")
	}
	return engine.Given(ctx)
}

// Ready returns [refusal.ErrInvalid] for a queue that Open did not return, and for a context that
// is nil. It is for the other packages of this module.
func (q *Queue) Ready(ctx context.Context) error { return q.ready(ctx) }

// opened panics if q is nil or empty. It is for functions that return no error.
func (q *Queue) opened() *Queue {
	if q == nil || q.engine == nil {
		panic("queue: a *Queue is nil or empty: use one that Open returned")
	}
	return q
}
