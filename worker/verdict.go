package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// verdict is an error by which a handler decides what happens to its task. It can be wrapped in other
// errors.
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

// RetryAfter returns an error that fails the attempt. If the task has a retry left, it runs again
// after d. If err is an error of Fail, the record keeps its code. err may be nil.
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
// worker, and no retry is spent. The text of an error that wraps it says why: the record keeps it until the task runs again.
func Release(d time.Duration) error {
	return &verdict{verb: queue.Release, delay: max(d, 0)}
}

// VerdictOf returns the outcome that an error of a handler means: the Verb, Class, Code and Delay
// of RetryAfter, Discard, Fail or Release, and those of a plain failure for any other error. The other
// fields are zero. Use it to store an error and make it again later, as package agentwait does.
func VerdictOf(err error) queue.Outcome {
	var v *verdict
	if errors.As(err, &v) {
		return queue.Outcome{Verb: v.verb, Class: v.class, Code: v.code, Delay: v.delay}
	}
	return queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}
}

// ErrSuspended is the error of a handler that has given up its claim itself, as an agent does when it
// waits (package agentwait). The worker reports no outcome for such an attempt. If the handler still
// had its claim, the next heartbeat gives the task back.
var ErrSuspended = errors.New("the agent is suspended and runs again when its wait is over: return this error from the handler")
