package agentwait

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Signal is what somebody tells the agent by queue.Signal, under this name, now or
// earlier. Wait for it as for any child; no wait cancels it, so it may still come after one
// that went on without. So it takes no Within: use Wait.Limit, or Select it beside a task
// that is a Timer. A payload that is no T is a *BadSignalError: NextSignal asks again. If T is not
// []byte, a payload that is not JSON is refused where it is sent, once the agent waits.
func Signal[T any](a *Agent, name string) *Future[T] {
	if a.given().named["s-"+name] { // asked for again: it is the same one
		return Child[T](a, "s-"+name)
	}
	return signal[T](a, "s-"+name, queue.CheckSignal(name))
}

func signal[T any](a *Agent, name string, err error) *Future[T] {
	task := queue.Task{ID: name, Kind: "signal", Queue: a.job.Queue, Promise: true}
	if _, raw := any(new(T)).(*[]byte); !raw {
		task.Headers = map[string]string{"content-type": "application/json"} // lua/call/signal.lua refuses anything else
	}
	return &Future[T]{child: a.schedule(task, err)}
}

// NextSignal waits for the next signal of the same name, after a signal whose payload the agent could not use.
// f is the future of that signal. A replay returns the same future.
//
//	decision := agentwait.Signal[Decision](a, "decision")
//	d, err := agentwait.Await(a, decision)
//	for bad := (*agentwait.BadSignalError)(nil); errors.As(err, &bad); {
//		decision = agentwait.NextSignal(a, decision)
//		d, err = agentwait.Await(a, decision)
//	}
func NextSignal[T any](a *Agent, f *Future[T]) *Future[T] {
	a.given()
	f.made()
	if f.err != nil {
		return f
	}
	name := f.name()
	if !isSignal(name) {
		return &Future[T]{child: &child{of: a, agent: a.job.ID, id: f.id, err: fmt.Errorf("%w: %s is no signal, which alone is asked for again", refusal.ErrInvalid, f.id)}}
	}
	name, n := times(name)
	name += "__" + strconv.Itoa(n+1)
	if a.named[name] {
		return Child[T](a, name)
	}
	return signal[T](a, name, nil)
}

// times splits the name of a signal's child into the signal's name and how many times the agent has asked for it.
func times(name string) (string, int) {
	if at := strings.LastIndex(name, "__"); at >= 0 {
		if n, err := strconv.Atoi(name[at+2:]); err == nil {
			return name[:at], n
		}
	}
	return name, 1
}

// BadSignalError reports a signal whose payload cannot be decoded into the type that the agent waits for. The name of
// the signal is used up: wait for the next one with NextSignal.
type BadSignalError struct {
	Signal string // its name
	Value  []byte // what it said
	Err    error  // what is wrong with that
}

// Error names the signal.
func (e *BadSignalError) Error() string {
	return fmt.Sprintf("cannot use what signal %s says: %v", e.Signal, e.Err)
}

// Unwrap returns what is wrong with it.
func (e *BadSignalError) Unwrap() error { return e.Err }

// SendSignal is like queue.Signal, but takes a value of the type that the agent waits for and encodes it as JSON.
func SendSignal[T any](ctx context.Context, q *queue.Queue, agent, name string, value T) (queue.Resolution, error) {
	payload, err := encode(value)
	if err != nil {
		return queue.Resolution{}, fmt.Errorf("%w: signal %s has no JSON: %w", refusal.ErrInvalid, name, err)
	}
	return q.Signal(ctx, agent, name, payload)
}
