package lines

import (
	"time"

	"github.com/curfew-dev/curfew/inspect"
)

// Agent is an agent in a list.
type Agent struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Queue    string    `json:"queue"`
	Status   string    `json:"status"`
	WaitEnds time.Time `json:"wait_deadline_at,omitzero"`
	Children int       `json:"children_seen"` // the number of live children that the count saw
}

// OfAgent returns the line of an agent.
func OfAgent(a inspect.Agent) Agent {
	return Agent{a.ID, a.Kind, a.Queue, string(a.Status), a.WaitEnds, a.Found}
}

// DueCount is the number of deadlines in one section of the span.
type DueCount struct {
	From  time.Time `json:"from_at"`
	Until time.Time `json:"until"`
	Count int64     `json:"count"`
}

// Due counts deadlines, of all queues or of one.
type Due struct {
	Queue  *string       `json:"queue,omitempty"` // nil: all; "" for tasks whose record is gone
	Now    time.Time     `json:"now"`
	Within time.Duration `json:"within_ms"`
	Counts []DueCount    `json:"counts"`
	// Past and Later are the deadlines before and after the span. They are nil for one queue, since those tasks are not read.
	Past  *int64 `json:"past,omitempty"`
	Later *int64 `json:"later,omitempty"`
}

// OfDue returns the counts of a span, without those before and after it.
func OfDue(d inspect.DueCounts) Due {
	l := Due{Now: d.Now, Within: d.Within}
	for i, n := range d.Buckets {
		l.Counts = append(l.Counts, DueCount{d.From(i), d.From(i + 1), n})
	}
	return l
}

// Overdue is a task whose deadline is past.
type Overdue struct {
	ID       string        `json:"id"`
	Kind     string        `json:"kind"`
	Queue    string        `json:"queue"`
	Status   string        `json:"status"`
	Deadline time.Time     `json:"deadline_at"`
	Lag      time.Duration `json:"lag_ms"`
}

// OfOverdue returns the line of a task whose deadline has passed.
func OfOverdue(d inspect.Due, now time.Time) Overdue {
	return Overdue{d.ID, d.Kind, d.Queue, string(d.Status), d.Deadline, now.Sub(d.Deadline)}
}
