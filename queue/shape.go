package queue

import (
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/names"
)

// shapes collects the tasks of one call. Tasks that differ only in id and payload share a shape,
// which is sent and checked once (lua/task/enqueue.lua). Children and other tasks do not share one: their checks differ.
type shapes struct {
	call  string  // identifies the call: a task of a given id that an earlier call created is reported as known; "" without such tasks
	tasks []*Task // one task of each shape
	rows  []any   // shape, id, payload of each task
}

func (s *shapes) add(t *Task, id string) {
	n := slices.IndexFunc(s.tasks, func(o *Task) bool {
		return t.sameShape(o) && t.fixed() == o.fixed() && names.OwnerOf(t.ID) == "" == (names.OwnerOf(o.ID) == "")
	})
	if n < 0 {
		n = len(s.tasks)
		s.tasks = append(s.tasks, t)
	}
	s.rows = append(s.rows, n+1, id, t.Payload)
}

// args appends the shapes and the rows to the arguments of a call.
func (s *shapes) args(args []any) []any {
	args = append(args, len(s.tasks))
	for _, t := range s.tasks {
		if s.call != "" && t.fixed() {
			args = t.fields(args, "enqueued_by", s.call)
			continue
		}
		args = t.fields(args)
	}
	return append(args, s.rows...)
}

// sameShape reports whether two tasks differ at most in id, name and payload. A field that it does not
// compare would be lost, so a test checks that it compares all fields of Task.
func (t *Task) sameShape(o *Task) bool {
	return t.Kind == o.Kind && t.Queue == o.Queue && t.Timeout == o.Timeout && t.Priority == o.Priority &&
		t.Deadline.Equal(o.Deadline) && t.DefaultTimeout == o.DefaultTimeout && t.Budget == o.Budget &&
		t.OnDeadline == o.OnDeadline && t.QueueTimeout == o.QueueTimeout && t.AttemptTimeout == o.AttemptTimeout &&
		t.OnTimeout == o.OnTimeout && t.WarnAt == o.WarnAt && t.CancelGrace == o.CancelGrace && t.TimeoutGrace == o.TimeoutGrace &&
		t.MaxRetries == o.MaxRetries && t.Backoff == o.Backoff && t.Retry == o.Retry && t.Hooks == o.Hooks &&
		t.Promise == o.Promise && t.Timer == o.Timer && t.Delay == o.Delay && t.StartAt.Equal(o.StartAt) &&
		t.Retention == o.Retention && t.IdempotencyKey == o.IdempotencyKey && t.IdempotencyScope == o.IdempotencyScope &&
		t.IdempotencyWindow == o.IdempotencyWindow && t.RetryOf == o.RetryOf && t.Node == o.Node && maps.Equal(t.Headers, o.Headers)
}
