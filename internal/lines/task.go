package lines

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Enqueued is the line for a task that was enqueued.
type Enqueued struct {
	ID       string    `json:"id"`
	Deadline time.Time `json:"deadline_at,omitzero"`
	New      bool      `json:"new"`
}

// Outcome is the result of a change to one task.
type Outcome struct {
	ID        string       `json:"id,omitempty"`
	Status    queue.Status `json:"status,omitempty"`
	Changed   bool         `json:"changed"`
	RetryOf   string       `json:"retry_of,omitempty"`
	Deadline  time.Time    `json:"deadline_at,omitzero"`
	GraceEnds time.Time    `json:"grace_at,omitzero"`
	RemovedAt time.Time    `json:"removed_at,omitzero"`
	Text      string       `json:"text"` // the outcome in words
}

// End is how a task has ended, or the status of a task that has not.
type End struct {
	ID          string            `json:"id"`
	Status      queue.Status      `json:"status"`
	Result      []byte            `json:"result,omitempty"`
	Error       string            `json:"error,omitempty"`
	Reason      queue.Reason      `json:"reason,omitempty"`
	Code        int               `json:"code,omitempty"`
	TimeoutType queue.TimeoutType `json:"timeout_type,omitempty"`
}

// OfEnd returns how a task has ended. Of a live task it returns the status.
func OfEnd(r *queue.Record) End {
	return End{ID: r.ID, Status: r.Status, Result: r.Result, Error: r.Error, Reason: r.Reason, Code: r.Code, TimeoutType: r.TimeoutType}
}
