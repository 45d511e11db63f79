package agentwait

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// failure is the error of a step in the form that the journal stores. The first run gets the error
// in this form too, because a handler could otherwise branch on something that is not stored, and
// its replay would diverge.
type failure struct {
	Release bool          `json:"release,omitempty"` // of worker.Release
	Discard bool          `json:"discard,omitempty"` // of worker.Discard
	Code    int           `json:"code,omitempty"`    // of worker.Fail
	Delay   time.Duration `json:"delay,omitempty"`   // of worker.RetryAfter and Release
	Late    bool          `json:"late,omitempty"`    // the error is context.DeadlineExceeded
	Ended   bool          `json:"ended,omitempty"`   // the error is context.Canceled
	Panic   bool          `json:"panic,omitempty"`   // the step panicked
	text    string
}

// maxFailure is the greatest number of stored bytes of the text, the same as for a task's error.
const maxFailure = 16 << 10

// failureOf converts an error to its stored form.
func failureOf(err error) *failure {
	if errors.Is(err, ErrSuspended) {
		err = worker.Discard(errNotSuspended)
	}
	verdict := worker.VerdictOf(err)
	return &failure{
		Release: verdict.Verb == queue.Release, Discard: verdict.Class == queue.ClassFailed, Code: verdict.Code, Delay: verdict.Delay,
		Late: errors.Is(err, context.DeadlineExceeded), Ended: errors.Is(err, context.Canceled),
		text: fmt.Sprint(err), // it recovers if the Error method panics
	}
}

// recordFailure records the failure of a step, and returns it in the form that a replay gets.
func (a *Agent) recordFailure(number int64, name string, f *failure) *failure {
	if limit := min(a.q.MaxBytes(), maxFailure); len(f.text) > limit {
		f.text = strings.ToValidUTF8(f.text[:limit], "")
	}
	if verdict, err := json.Marshal(f); err == nil { // it cannot fail: f has only numbers and booleans
		a.record(number, fmt.Appendf(nil, "failed %s\n%s\n%s", name, verdict, f.text))
	}
	return f
}

// readFailure decodes an entry of recordFailure.
func readFailure(entry string) *failure {
	verdict, text, _ := strings.Cut(entry, "\n")
	f := &failure{text: text}
	if err := json.Unmarshal([]byte(verdict), f); err != nil {
		f.text = fmt.Sprintf("cannot decode the failure of a step in the journal (%v): %s", err, entry)
	}
	return f
}

func (f *failure) Error() string { return f.text }

// Is reports whether the step's error was context.DeadlineExceeded or context.Canceled. The journal
// stores no other errors.
func (f *failure) Is(target error) bool {
	return f.Late && target == context.DeadlineExceeded || f.Ended && target == context.Canceled
}

// Unwrap returns the verdict on the task, if the step's error had one.
func (f *failure) Unwrap() error {
	switch {
	case f.Release:
		return worker.Release(f.Delay)
	case f.Discard:
		return worker.Discard(nil)
	case f.Code != 0:
		return worker.Fail(f.Code, nil)
	case f.Delay > 0:
		return worker.RetryAfter(f.Delay, nil)
	}
	return nil
}
