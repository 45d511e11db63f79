package worker

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

func TestVerdictsUnwrap(t *testing.T) {
	for _, err := range []error{RetryAfter(0, errBoom), Discard(errBoom), Fail(1, errBoom)} {
		if !errors.Is(err, errBoom) {
			t.Errorf("errors.Is does not find the handler's error in %#v", err)
		}
	}
}

func TestACodeIsKeptInRetryAfterAndDiscard(t *testing.T) {
	for _, test := range []struct {
		claim string
		err   error
		want  queue.Outcome
	}{
		{"RetryAfter of Fail", RetryAfter(time.Second, Fail(75, errBoom)), queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Code: 75, Delay: time.Second}},
		{"Discard of Fail", Discard(Fail(65, errBoom)), queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed, Code: 65}},
		{"RetryAfter without an error", RetryAfter(time.Second, nil), queue.Outcome{Verb: queue.Fail, Class: queue.ClassError, Delay: time.Second}},
		{"Discard of another error", Discard(errBoom), queue.Outcome{Verb: queue.Fail, Class: queue.ClassFailed}},
	} {
		if got := VerdictOf(test.err); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s is %+v, want %+v", test.claim, got, test.want)
		}
	}
}
