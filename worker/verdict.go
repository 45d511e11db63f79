package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// verdict is an error by which a handler says what is to become of its task. It may
// be wrapped.
type verdict struct {
	verb  queue.Verb
	class string
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

// Unwrap returns what the handler said.
func (v *verdict) Unwrap() error { return v.err }

// RetryAfter fails the attempt. If the task has a retry left it runs again after d.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, delay: max(d, 0), err: err}
}

// Discard fails the task for good: its retries are not spent.
func Discard(err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassFailed, err: err}
}

// Fail fails the attempt with an exit code, which the record keeps.
func Fail(code int, err error) error {
	return &verdict{verb: queue.Fail, class: queue.ClassError, code: code, err: err}
}

// Release gives the task back, to run again after d, here or elsewhere. It spends
// no retry.
func Release(d time.Duration) error {
	return &verdict{verb: queue.Release, delay: max(d, 0)}
}

// VerdictOf is what an attempt that returns this error reports, as far as the error itself
// says: the Verb, Class, Code and Delay that RetryAfter, Discard, Fail or Release stand
// for, and those of a plain failure for any other. It is for those who keep an error and
// make it anew, as agents do (package agentwait).
func VerdictOf(err error) queue.Outcome {
	var v *verdict
	if errors.As(err, &v) {
		return queue.Outcome{Verb: v.verb, Class: v.class, Code: v.code, Delay: v.delay}
	}
	return queue.Outcome{Verb: queue.Fail, Class: queue.ClassError}
}

// ErrSuspended is for handlers that give their claim up by themselves, as agents do when
// they wait (package agentwait). The attempt is over, and there is nothing to report of
// it. Of a handler that still has its claim the worker gives it back, with its next
// heartbeat.
var ErrSuspended = errors.New("the agent waits, and runs again when what it waits for is there: return this error")

// judge makes an outcome of what a handler returned. cause is why its context had
// ended by then, nil if it had not.
//
// After an end by time or by shutdown an error says more about that end than about
// the task, whatever else it says; success is success whenever it comes.
func judge(o *queue.Outcome, result []byte, err, cause error, most int) {
	if err == nil {
		if len(result) <= most {
			o.Verb, o.Result = queue.Complete, result
			return
		}
		err = Discard(fmt.Errorf("the result has %d bytes, the limit is %d: store it elsewhere and return a reference", len(result), most))
	}
	o.Verb, o.Class, o.Error = queue.Fail, queue.ClassError, text(err, most)
	switch {
	case errors.Is(err, ErrSuspended):
		*o = queue.Outcome{ID: o.ID, Epoch: o.Epoch} // no verb: nothing is reported
		return
	case errors.Is(cause, ErrShutdown):
		o.Verb = queue.Release
	case cause == ErrTaskTimeout || cause == ErrAttemptTimeout:
		o.Class = queue.ClassTimeout
	default:
		said := VerdictOf(err)
		o.Verb, o.Class, o.Code, o.Delay = said.Verb, said.Class, said.Code, said.Delay
	}
	if o.Verb == queue.Release {
		o.Class, o.Error = "", ""
	}
}
