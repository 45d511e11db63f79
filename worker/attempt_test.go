package worker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

var errBoom = errors.New("boom")

type rude struct{}

func (rude) Error() string { panic("no text") }

func TestJudge(t *testing.T) {
	cancelled := stopCause("cancelled")
	for _, c := range []struct {
		claim  string
		result string
		err    error
		cause  error
		want   queue.Outcome
	}{
		{"a value completes", "v", nil, nil, queue.Outcome{Verb: "complete", Result: []byte("v")}},
		{"an error fails and may be retried", "", errBoom, nil, queue.Outcome{Verb: "fail", Class: "error", Error: "boom"}},
		{"RetryAfter fails with a delay", "", RetryAfter(time.Minute, errBoom), nil,
			queue.Outcome{Verb: "fail", Class: "error", Error: "boom", Delay: time.Minute}},
		{"a negative delay is no delay", "", RetryAfter(-time.Minute, errBoom), nil,
			queue.Outcome{Verb: "fail", Class: "error", Error: "boom"}},
		{"Discard fails without a retry", "", Discard(errBoom), nil, queue.Outcome{Verb: "fail", Class: "failed", Error: "boom"}},
		{"Fail keeps the code", "", Fail(3, errBoom), nil, queue.Outcome{Verb: "fail", Class: "error", Error: "boom", Code: 3}},
		{"Release gives the task back", "", Release(time.Second), nil, queue.Outcome{Verb: "release", Delay: time.Second}},
		{"an error that wraps Release says why", "", fmt.Errorf("not yet: %w", Release(time.Second)), nil,
			queue.Outcome{Verb: "release", Delay: time.Second, Error: "not yet: released"}},
		{"a wrapped verdict counts, and the text is that of the wrapper", "", fmt.Errorf("step 2: %w", Discard(errBoom)), nil,
			queue.Outcome{Verb: "fail", Class: "failed", Error: "step 2: boom"}},
		{"a verdict without an error has a text", "", Discard(nil), nil,
			queue.Outcome{Verb: "fail", Class: "failed", Error: "discarded"}},

		{"success after the local limit is success", "v", nil, ErrTaskTimeout, queue.Outcome{Verb: "complete", Result: []byte("v")}},
		{"success during shutdown is success", "v", nil, ErrShutdown, queue.Outcome{Verb: "complete", Result: []byte("v")}},
		{"an error after the local limit is a timeout", "", errBoom, ErrTaskTimeout,
			queue.Outcome{Verb: "fail", Class: "timeout", Error: "boom"}},
		{"an error after the attempt's limit is a timeout", "", errBoom, ErrAttemptTimeout,
			queue.Outcome{Verb: "fail", Class: "timeout", Error: "boom"}},
		{"a verdict does not turn a timeout into a retry", "", RetryAfter(0, errBoom), ErrTaskTimeout,
			queue.Outcome{Verb: "fail", Class: "timeout", Error: "boom"}},
		{"an error after the task's deadline gives the task back: Redis decides", "", errBoom, ErrDeadline, queue.Outcome{Verb: "release"}},
		{"an error in the grace before the deadline is the timeout of the task", "", errBoom, errDeadlineNear,
			queue.Outcome{Verb: "fail", Class: "deadline", Error: "boom"}},
		{"Release in the grace before the deadline gives the task back", "", Release(0), errDeadlineNear, queue.Outcome{Verb: "release"}},
		{"an error during shutdown gives the task back", "", errBoom, ErrShutdown, queue.Outcome{Verb: "release"}},
		{"a verdict during shutdown gives the task back", "", Discard(errBoom), ErrShutdown, queue.Outcome{Verb: "release"}},
		{"an error after a stop is an error", "", errBoom, cancelled, queue.Outcome{Verb: "fail", Class: "error", Error: "boom"}},

		{"a result that is too large fails without a retry", strings.Repeat("x", 101), nil, nil, queue.Outcome{Verb: "fail", Class: "failed",
			Error: "the result has 101 bytes, the limit is 100: store it elsewhere and return a reference"}},
		{"a long error is cut between two characters", "", errors.New(strings.Repeat("x", 99) + "é"), nil,
			queue.Outcome{Verb: "fail", Class: "error", Error: strings.Repeat("x", 99)}},
		{"an error whose Error method panics is an error", "", rude{}, nil,
			queue.Outcome{Verb: "fail", Class: "error", Error: "an error whose Error method panics: no text"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var got queue.Outcome
			var result []byte
			if c.result != "" {
				result = []byte(c.result)
			}
			judge(&got, result, c.err, c.cause, 100)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("judge = %+v\n      want %+v", got, c.want)
			}
		})
	}
}
