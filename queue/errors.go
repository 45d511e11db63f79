package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// What a caller may act on. Ask with errors.Is. Package [refusal] says what each one means.
var (
	ErrInvalid     = refusal.ErrInvalid
	ErrNotFound    = refusal.ErrNotFound
	ErrConflict    = refusal.ErrConflict
	ErrOwnerEnded  = refusal.ErrOwnerEnded
	ErrCancelled   = refusal.ErrCancelled
	ErrUnknown     = refusal.ErrUnknown
	ErrUnavailable = refusal.ErrUnavailable
	ErrFull        = refusal.ErrFull
	ErrWrongType   = refusal.ErrWrongType
	ErrBroken      = refusal.ErrBroken
	ErrPartitions  = refusal.ErrPartitions
	ErrNewer       = refusal.ErrNewer
	ErrOlder       = refusal.ErrOlder
	ErrNoRight     = refusal.ErrNoRight
	ErrUnfit       = refusal.ErrUnfit
)

// InvalidError names what was wrong with an argument. Nothing was changed.
type InvalidError = refusal.InvalidError

// Error says which operation failed on which task. It wraps the cause.
type Error = refusal.Error

// TaskTimedOutError is the end of a task that ran out of time.
// errors.Is(err, context.DeadlineExceeded) is true.
type TaskTimedOutError struct {
	TaskID    string
	Deadline  time.Time // zero if it had none of its own
	StartedAt time.Time // zero if it never ran
	Type      string    // execution, queue, attempt or workflow
}

func (e *TaskTimedOutError) Error() string {
	return "Task timed out: " + e.TaskID + ": Task exceeded deadline"
}

// Is makes a timed-out task a context.DeadlineExceeded.
func (e *TaskTimedOutError) Is(target error) bool { return target == context.DeadlineExceeded }

// TaskFailedError is the end of a task whose handler failed for good.
type TaskFailedError struct {
	TaskID, Kind, Reason string
	Code                 int // exit code, where the handler gave one
	Index                int // in a wait of an agent: its place among the members
	Err                  error
}

func (e *TaskFailedError) Error() string {
	return fmt.Sprintf("Task '%s' (id=%s) failed: %v", e.Kind, e.TaskID, e.Err)
}

// Unwrap returns what the handler said.
func (e *TaskFailedError) Unwrap() error { return e.Err }
