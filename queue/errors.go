package queue

import (
	"context"
	"fmt"
	"time"
)

// TaskTimedOutError is the error of a task that timed out. errors.Is(err, context.DeadlineExceeded) is true. If the
// context of the caller ended instead, errors.Is(err, [refusal.ErrWaitOver]) is true.
type TaskTimedOutError struct {
	TaskID    string
	Deadline  time.Time // the instant that passed: the task's deadline, its owner's, or the limit of its line or attempt
	StartedAt time.Time // zero if it never ran
	Type      TimeoutType
}

// Error returns a text with the task's id and the limit.
func (e *TaskTimedOutError) Error() string {
	return "Task timed out: " + e.TaskID + ": " + e.Type.ErrorText(timedOutError)
}

// Is reports whether target is context.DeadlineExceeded.
func (e *TaskTimedOutError) Is(target error) bool { return target == context.DeadlineExceeded }

// TaskFailedError is the error of a task that is FAILED and did not time out. It is also the error
// of a task with [DeadlineFail] that timed out.
type TaskFailedError struct {
	TaskID, Kind string
	Reason       Reason
	Code         int // the exit code, if the handler gave one
	Index        int // in a wait of an agent: the task's index among the members
	Err          error
}

// Error returns a text with the task's kind, its id and its error.
func (e *TaskFailedError) Error() string {
	return fmt.Sprintf("Task '%s' (id=%s) failed: %v", e.Kind, e.TaskID, e.Err)
}

// Unwrap returns the task's error.
func (e *TaskFailedError) Unwrap() error { return e.Err }
