package agentwait

import (
	"context"
	"fmt"

	"github.com/curfew-dev/curfew/refusal"
)

var errNobody = fmt.Errorf("%w: the agent is nil: give the one that the handler got", refusal.ErrInvalid)

// nobody stands for an agent that is nil, and refuses everything.
var nobody = &Agent{Context: context.Background(), gone: errNobody}

// waiterOf is who waits; nobody if there is none.
func waiterOf(on Waiter) (*Agent, Wait) {
	switch on := on.(type) {
	case nil:
		return nobody, Wait{}
	case adjusted:
		return on.agent.orNobody(), on.wait
	case *Agent:
		return on.orNobody(), Wait{}
	}
	return on.waiter()
}

// orNobody is the agent itself, or nobody.
func (a *Agent) orNobody() *Agent {
	if a == nil {
		return nobody
	}
	return a
}

// given panics with a sentence where there is no error to return.
func (a *Agent) given() *Agent {
	if a == nil {
		panic("agentwait: the agent is nil: give the one that the handler got")
	}
	return a
}

// made panics with a sentence where there is no error to return.
func (f *Future[T]) made() *Future[T] {
	if f == nil || f.child == nil {
		panic("agentwait: the future is nil or empty: give what Schedule, Promise, Signal, Child or Of returned")
	}
	return f
}
