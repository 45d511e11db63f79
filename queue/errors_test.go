package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestErrorsSayWhatTheyAre(t *testing.T) {
	boom := errors.New("boom")
	late := &queue.TaskTimedOutError{TaskID: "0-a", Type: "execution"}
	broken := &queue.TaskFailedError{TaskID: "0-a", Kind: "render", Err: boom}
	for _, row := range []struct {
		err  error
		text string
		is   []error
		not  []error
	}{
		{late, "Task timed out: 0-a: Task exceeded deadline", []error{context.DeadlineExceeded, late}, []error{context.Canceled, refusal.ErrCancelled}},
		{fmt.Errorf("step 2: %w", late), "step 2: Task timed out: 0-a: Task exceeded deadline", []error{context.DeadlineExceeded}, nil},
		{broken, "Task 'render' (id=0-a) failed: boom", []error{boom}, []error{context.DeadlineExceeded}},
		{&refusal.InvalidError{Field: "queue", Why: "is empty"}, "queue is empty", []error{refusal.ErrInvalid}, []error{refusal.ErrConflict}},
		{&refusal.Error{Op: "cancel", Task: "0-a", Err: refusal.ErrNotFound}, "cancel 0-a: no such task", []error{refusal.ErrNotFound}, []error{refusal.ErrInvalid}},
		{&refusal.Error{Op: "stats", Err: refusal.ErrUnavailable}, "stats: " + refusal.ErrUnavailable.Error(), []error{refusal.ErrUnavailable}, nil},
	} {
		if got := row.err.Error(); got != row.text {
			t.Errorf("text %q, want %q", got, row.text)
		}
		for _, target := range row.is {
			if !errors.Is(row.err, target) {
				t.Errorf("%q is not %q", row.err, target)
			}
		}
		for _, target := range row.not {
			if errors.Is(row.err, target) {
				t.Errorf("%q is %q", row.err, target)
			}
		}
	}
}

func TestEveryErrorNamesItsOperationAndTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		_, err := q.Get(context.Background(), unknown)
		var where *refusal.Error
		if !errors.As(err, &where) || where.Op != "get" || where.Task != unknown || where.Err != refusal.ErrNotFound {
			t.Errorf("Get = %#v, want an *Error of get and the id", err)
		}
		_, err = q.Cancel(context.Background(), unknown, "")
		if want := "cancel " + unknown + ": no such task"; err == nil || err.Error() != want {
			t.Errorf("Cancel = %v, want %s", err, want)
		}
	})
}
