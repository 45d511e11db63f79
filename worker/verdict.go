package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// verdict is an error by which a handler decides what happens to its task. It may be
// wrapped.
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

// RetryAfter fails the attempt. If the task has a retry left, it runs again after d.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, delay: max(d, 0), err: err}
}

// Discard fails the task for good: no retry is made.
func Discard(err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassFailed, err: err}
}

// Fail fails the attempt with an exit code, which the record keeps.
func Fail(code int, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, code: code, err: err}
}

// Release gives the task back. It runs again after d, here or elsewhere, and no retry is
// spent.
func Release(d time.Duration) error {
	return &verdict{verb: queue.Release, delay: max(d, 0)}
}

// VerdictOf returns what the worker reports of an attempt that returns this error, as far
// as the error decides it: the Verb, Class, Code and Delay of RetryAfter, Discard, Fail or
// Release, and those of a plain failure for any other error. Use it to store an error and
// make it again later, as package agentwait does.
func VerdictOf(err error) queue.Outcome {
	var v *verdict
	if errors.As(err, &v) {
		return queue.Outcome{Verb: v.verb, Class: v.class, Code: v.code, Delay: v.delay}
	}
	return queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}
}

// ErrSuspended is returned by handlers that have given up their claim themselves, as
// agents do when they wait (package agentwait). The worker reports nothing of such an
// attempt. If the handler still had its claim, the next heartbeat gives the task back.
var ErrSuspended = errors.New("the agent waits, and runs again when what it waits for is there: return this error")
