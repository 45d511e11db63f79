package agentwait

import (
	"context"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
)

var errNilAgent = fmt.Errorf("%w: the agent is nil: use the agent that the handler received", refusal.ErrInvalid)

// nilAgent stands in for a nil agent, so that functions which return an error need no check. Every
// call on it fails.
var nilAgent = &Agent{Context: context.Background(), stopErr: errNilAgent}

// waiterOf returns the agent that waits, or nilAgent if on or its agent is nil.
func waiterOf(on Waiter) (*Agent, Wait) {
	if on == nil {
		return nilAgent, Wait{}
	}
	a, w := on.waiter()
	return a.orNilAgent(), w
}

// orNilAgent returns a, or nilAgent if a is nil.
func (a *Agent) orNilAgent() *Agent {
	if a == nil {
		return nilAgent
	}
	return a
}

// mustAgent returns a, and panics if a is nil. It is for functions that cannot return an error.
func (a *Agent) mustAgent() *Agent {
	if a == nil {
		panic("agentwait: the agent is nil: use the agent that the handler received")
	}
	return a
}

// mustFuture returns f, and panics if f is nil or empty. It is for functions that cannot return an
// error.
func (f *Future[T]) mustFuture() *Future[T] {
	if f == nil || f.child == nil {
		panic("agentwait: the future is nil or empty: use what Schedule, Promise, Signal, Child or Of returned")
	}
	return f
}
