package refusal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestAnErrorIsOneLineWhateverTheIDIs(t *testing.T) {
	for _, row := range []struct{ task, want string }{
		{"", "get: EOF"},
		{"0-01J9ZK3Q8X4M2C7W5T", "get 0-01J9ZK3Q8X4M2C7W5T: EOF"},
		{"0-01J9ZK3Q8X4M2C7W5T.page-1!success", "get 0-01J9ZK3Q8X4M2C7W5T.page-1!success: EOF"},
		{"two words", `get "two words": EOF`},
		{"0-a\nlevel=ERROR", `get "0-a\nlevel=ERROR": EOF`},
		{"0-\x1b[2J", `get "0-\x1b[2J": EOF`},
		{"0-", `get "0-": EOF`},
		{"word", `get "word": EOF`},
		{"1000-a", `get "1000-a": EOF`},
		{strings.Repeat("x", 1000), `get "` + strings.Repeat("x", 64) + `…": EOF`},
	} {
		if got := Failed("get", row.task, io.EOF).Error(); got != row.want {
			t.Errorf("the error of task %.80q is %q, want %q", row.task, got, row.want)
		}
	}
}

func TestFailedWrapsTheCauseAndIsNilWithoutOne(t *testing.T) {
	if err := Failed("get", "0-a", nil); err != nil {
		t.Errorf("Failed of nil = %v, want nil", err)
	}
	var e *Error
	if err := fmt.Errorf("step: %w", Failed("get", "0-a", ErrNotFound)); !errors.Is(err, ErrNotFound) || !errors.As(err, &e) || e.Op != "get" || e.Task != "0-a" {
		t.Errorf("%v wraps %+v, want get, 0-a and ErrNotFound", err, e)
	}
}

func TestInvalidNamesTheField(t *testing.T) {
	err := Failed("enqueue", "", Invalid("kind", "%q is wrong", "k"))
	var e *InvalidError
	if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || !errors.As(err, &e) || e.Field != "kind" || err.Error() != `enqueue: kind "k" is wrong` {
		t.Errorf("%v, %+v", err, e)
	}
}

func TestPermanentErrorsAreThoseOfTheSetup(t *testing.T) {
	for _, err := range []error{ErrNoAccess, ErrMismatch, ErrNoRight, ErrUnfit, ErrNewer, ErrOlder, ErrClosed} {
		if !Permanent(Failed("get", "0-a", fmt.Errorf("%w: x", err))) {
			t.Errorf("%v is not permanent", err)
		}
	}
	for _, err := range []error{nil, io.EOF, ErrInvalid, ErrNotFound, ErrUnknown, ErrUnavailable, ErrFull, ErrWrongType, ErrBroken, ErrNotHeld} {
		if Permanent(err) {
			t.Errorf("%v is permanent", err)
		}
	}
}

func TestStoppingIsACancellation(t *testing.T) {
	if !errors.Is(ErrStopping, ErrCancelled) {
		t.Error("ErrStopping does not wrap ErrCancelled")
	}
}
