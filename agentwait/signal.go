package agentwait

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Signal returns the future of a signal: a message that another program sends to the agent with
// queue.Signal, under this name. The message can be sent before or after this call. Wait for it as
// for any child.
//
// No wait cancels a signal, because the message can still come after a wait has continued without
// it. So a signal cannot have Within: use Wait.Limit, or Select the signal and a Timer task.
//
// Once the agent waits, queue.Signal refuses a payload that is not of type T, as queue.ResultTypeOf
// says; a []byte takes any bytes. A message that was sent earlier could not be checked: if it cannot be
// decoded as T, the wait returns a *BadSignalError, and NextSignal waits for another message.
func Signal[T any](a *Agent, name string) *Future[T] {
	if a.mustAgent().names["s-"+name] { // a second call returns the same signal
		return Child[T](a, "s-"+name)
	}
	return signal[T](a, "s-"+name, queue.Task{}, queue.CheckSignal(name))
}

// TimedSignal is Signal with a Timeout, like a Promise's, and a Node. It uses only these two fields
// of task. A message that comes after the timeout is refused. n is 1 for the first signal of the
// name, 2 for the second, and so on.
func TimedSignal[T any](a *Agent, name string, n int, task queue.Task) *Future[T] {
	err := queue.CheckSignal(name)
	if n < 1 && err == nil {
		err = fmt.Errorf("%w: the number of the signal %s is %d: the first one is 1", refusal.ErrInvalid, name, n)
	}
	child := "s-" + name
	if n > 1 {
		child += "__" + strconv.Itoa(n)
	}
	if a.mustAgent().names[child] {
		return Child[T](a, child)
	}
	return signal[T](a, child, task, err)
}

func signal[T any](a *Agent, name string, options queue.Task, err error) *Future[T] {
	task := queue.Task{ID: name, Kind: "signal", Queue: a.job.Queue, Promise: true, Timeout: options.Timeout, Node: options.Node,
		ResultType: queue.ResultTypeOf[T]()}
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
	a.mustAgent()
	f.mustFuture()
	if f.err != nil {
		return f
	}
	name := f.name()
	if !isSignal(name) {
		return &Future[T]{child: &child{owner: a, agent: a.job.ID, id: f.id, err: fmt.Errorf("%w: %s is not a signal: give NextSignal the future of a signal", refusal.ErrInvalid, f.id)}}
	}
	name, n := splitSignal(name)
	name += "__" + strconv.Itoa(n+1)
	if a.names[name] {
		return Child[T](a, name)
	}
	return signal[T](a, name, queue.Task{}, nil)
}

// splitSignal splits the name of a signal's child into the signal's name and its number among the
// signals of this name.
func splitSignal(name string) (string, int) {
	if at := strings.LastIndex(name, "__"); at >= 0 {
		if n, err := strconv.Atoi(name[at+2:]); err == nil {
			return name[:at], n
		}
	}
	return name, 1
}

// BadSignalError reports a signal whose payload cannot be decoded into the type that the agent waits
// for. This signal is settled, so wait for the next one with NextSignal.
type BadSignalError struct {
	Signal string // name of the signal
	Value  []byte // its payload
	Err    error  // why the payload cannot be decoded
}

// Error returns the name of the signal and the reason.
func (e *BadSignalError) Error() string {
	return fmt.Sprintf("cannot decode the payload of signal %s: %v", e.Signal, e.Err)
}

// Unwrap returns Err.
func (e *BadSignalError) Unwrap() error { return e.Err }

// SendSignal is queue.Signal for a value, which it encodes as JSON, as the agent expects it.
func SendSignal[T any](ctx context.Context, q *queue.Queue, agent, name string, value T) (queue.Resolution, error) {
	payload, err := encode(value)
	if err != nil {
		return queue.Resolution{}, fmt.Errorf("%w: cannot encode the payload of signal %s as JSON: %w", refusal.ErrInvalid, name, err)
	}
	return q.Signal(ctx, agent, name, payload)
}
