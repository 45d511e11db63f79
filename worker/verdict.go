package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// verdict is an error with which a handler decides the fate of its task. Other errors can wrap it.
type verdict struct {
	verb  queue.Verb
	class queue.Class
	code  int
	delay time.Duration
	err   error
}

func (v *verdict) Error() string {
	switch {
	case v.err != nil:
		return v.err.Error()
	case v.class == queue.ClassDiverged:
		return "diverged"
	case v.verb == queue.Release:
		return "released"
	case v.class == queue.ClassFailed:
		return "discarded"
	case v.code != 0:
		return fmt.Sprintf("exit code %d", v.code)
	}
	return "failed"
}

// Unwrap returns the handler's own error.
func (v *verdict) Unwrap() error { return v.err }

// RetryAfter returns an error that fails the attempt. If a retry remains, the task runs again after
// d. If err is an error of Fail, the record keeps its code. err may be nil.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, code: VerdictOf(err).Code, delay: max(d, 0), err: err}
}

// Discard returns an error that fails the task without a retry. Only a retry expression of the task
// can decide otherwise. If err is an error of Fail, the record keeps its code. err may be nil.
func Discard(err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassFailed, code: VerdictOf(err).Code, err: err}
}

// Fail returns an error that fails the attempt with an exit code. The record keeps the code. err may
// be nil.
func Fail(code int, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, code: code, err: err}
}

// Release returns an error that gives the task back. The task runs again after d, in this or another
// worker, and uses no retry. An error that wraps it is the reason: the record keeps its text until
// the task runs again.
func Release(d time.Duration) error {
	return &verdict{verb: queue.Release, delay: max(d, 0)}
}

// Diverged returns an error that gives an agent back because this program cannot replay it. That uses
// no retry. The agent is held until a worker with another program runs. If one runs already, the agent
// goes back in line after a short delay, of 3 to 9 s at most. The record keeps the text of err, up to 1024
// bytes. Package agentwait returns this error; other handlers do not need it.
func Diverged(err error) error {
	// The delay is random, because this worker looks for tasks at a steady pace: with a fixed delay it
	// would look whenever the agent is due, and always be the first.
	delay := 3*time.Second + rand.N(6*time.Second)
	return &verdict{verb: queue.Release, class: queue.ClassDiverged, delay: delay, err: err}
}

// VerdictOf converts an error of a handler to an outcome: to the Verb, Class, Code and Delay of
// RetryAfter, Discard, Fail or Release, and to a plain failure for any other error. The other fields
// are zero. With it, package agentwait stores an error and makes it again later.
func VerdictOf(err error) queue.Outcome {
	var v *verdict
	if errors.As(err, &v) {
		return queue.Outcome{Verb: v.verb, Class: v.class, Code: v.code, Delay: v.delay}
	}
	return queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}
}

// ErrSuspended is the error of a handler that has given up its claim itself. An agent does so when
// it waits (package agentwait). The worker reports no outcome for such an attempt. If the handler
// still had its claim, the next heartbeat gives the task back.
var ErrSuspended = errors.New("the agent is suspended and runs again when its wait is over: return this error from the handler")
