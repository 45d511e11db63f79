package worker

import (
	"context"
	"errors"
	"testing"
)

func TestCauses(t *testing.T) {
	for _, err := range []error{ErrTimeout, ErrDeadline, ErrAttemptTimeout, ErrTaskTimeout} {
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is not ErrTimeout and context.DeadlineExceeded", err)
		}
	}
	if errors.Is(ErrDeadline, ErrTaskTimeout) || errors.Is(ErrShutdown, ErrTimeout) {
		t.Error("errors.Is takes one cause for another")
	}
	for reason, want := range map[string]error{
		"cancelled": ErrCancelled, "owner_ended": ErrCancelled,
		"lost": ErrClaimLost, "gone": ErrClaimLost, "released": ErrClaimLost, "completed": ErrClaimLost,
	} {
		if got := stopCause(reason); !errors.Is(got, want) {
			t.Errorf("stopCause(%q) = %v, want %v", reason, got, want)
		}
	}
}
