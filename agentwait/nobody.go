package agentwait

import (
	"context"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
)

var errNobody = fmt.Errorf("%w: the agent is nil: use the agent that the handler received", refusal.ErrInvalid)

// nobody is used in place of a nil agent. Every call on it fails.
var nobody = &Agent{Context: context.Background(), gone: errNobody}

// waiterOf returns the agent that waits, or nobody if on or its agent is nil.
func waiterOf(on Waiter) (*Agent, Wait) {
	if on == nil {
		return nobody, Wait{}
	}
	a, w := on.waiter()
	return a.orNobody(), w
}

// orNobody returns a, or nobody if a is nil.
func (a *Agent) orNobody() *Agent {
	if a == nil {
		return nobody
	}
	return a
}

// given returns a, and panics if a is nil. It is for functions that return no error.
func (a *Agent) given() *Agent {
	if a == nil {
		panic("agentwait: the agent is nil: use the agent that the handler received")
	}
	return a
}

// made returns f, and panics if f is nil or empty. It is for functions that return no error.
func (f *Future[T]) made() *Future[T] {
	if f == nil || f.child == nil {
		panic("agentwait: the future is nil or empty: use what Schedule, Promise, Signal, Child or Of returned")
	}
	return f
}
