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

// failure is the error of a step as the journal keeps it. The first run gets it in this form
// too: a handler that branches on what was lost would do something else in its replay.
type failure struct {
	Release bool          `json:"release,omitempty"` // of worker.Release
	Discard bool          `json:"discard,omitempty"` // of worker.Discard
	Code    int           `json:"code,omitempty"`    // of worker.Fail
	Delay   time.Duration `json:"delay,omitempty"`   // of worker.RetryAfter and Release
	Late    bool          `json:"late,omitempty"`    // it is a context.DeadlineExceeded
	Ended   bool          `json:"ended,omitempty"`   // it is a context.Canceled
	Panic   bool          `json:"panic,omitempty"`   // it was no error
	text    string
}

// maxFailure is how many bytes of its text are kept, as many as of a task's error.
const maxFailure = 16 << 10

// failureOf is what is kept of an error.
func failureOf(err error) *failure {
	if errors.Is(err, ErrSuspended) {
		err = worker.Discard(errNotSuspended)
	}
	said := worker.VerdictOf(err)
	return &failure{
		Release: said.Verb == queue.Release, Discard: said.Class == queue.ClassFailed, Code: said.Code, Delay: said.Delay,
		Late: errors.Is(err, context.DeadlineExceeded), Ended: errors.Is(err, context.Canceled),
		text: fmt.Sprint(err), // which outlives an Error method that panics
	}
}

// failed records what a step failed of, and returns it as a replay will find it.
func (a *Agent) failed(number int64, name string, f *failure) *failure {
	if most := min(a.q.MaxBytes(), maxFailure); len(f.text) > most {
		f.text = strings.ToValidUTF8(f.text[:most], "")
	}
	if kept, err := json.Marshal(f); err == nil { // which has numbers and truths alone
		a.record(number, fmt.Appendf(nil, "failed %s\n%s\n%s", name, kept, f.text))
	}
	return f
}

// readFailure is what failed has recorded.
func readFailure(entry string) *failure {
	kept, text, _ := strings.Cut(entry, "\n")
	f := &failure{text: text}
	if err := json.Unmarshal([]byte(kept), f); err != nil {
		f.text = fmt.Sprintf("the journal keeps a failure that this program cannot read (%v): %s", err, entry)
	}
	return f
}

func (f *failure) Error() string { return f.text }

// Is tells of the two that mean the same to everybody.
func (f *failure) Is(target error) bool {
	return f.Late && target == context.DeadlineExceeded || f.Ended && target == context.Canceled
}

// Unwrap is the verdict on the task, where the error had one.
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
