package queue

import (
	"context"
	"fmt"
	"time"
)

// TaskTimedOutError is the end of a task that ran out of time.
// errors.Is(err, context.DeadlineExceeded) is true.
type TaskTimedOutError struct {
	TaskID    string
	Deadline  time.Time // the instant that passed: its deadline, its owner's, or the limit of its line or attempt
	StartedAt time.Time // zero if it never ran
	Type      TimeoutType
}

// Error names the task.
func (e *TaskTimedOutError) Error() string {
	return "Task timed out: " + e.TaskID + ": Task exceeded deadline"
}

// Is makes a timed-out task a context.DeadlineExceeded.
func (e *TaskTimedOutError) Is(target error) bool { return target == context.DeadlineExceeded }

// TaskFailedError is the end of a task whose handler failed for good.
type TaskFailedError struct {
	TaskID, Kind string
	Reason       Reason
	Code         int // exit code, where the handler gave one
	Index        int // in a wait of an agent: its place among the members
	Err          error
}

// Error names the kind and the task, and says what the handler said.
func (e *TaskFailedError) Error() string {
	return fmt.Sprintf("Task '%s' (id=%s) failed: %v", e.Kind, e.TaskID, e.Err)
}

// Unwrap returns what the handler said.
func (e *TaskFailedError) Unwrap() error { return e.Err }
