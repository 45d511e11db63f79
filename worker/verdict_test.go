package worker

import (
	"errors"
	"testing"
)

func TestVerdictsUnwrap(t *testing.T) {
	for _, err := range []error{RetryAfter(0, errBoom), Discard(errBoom), Fail(1, errBoom)} {
		if !errors.Is(err, errBoom) {
			t.Errorf("errors.Is does not find the handler's error in %#v", err)
		}
	}
}
