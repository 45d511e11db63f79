package harness

import (
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/eventlog"
	"github.com/curfew-dev/curfew/queue"
)

// Event is an event of an event stream.
type Event struct {
	Entry    string // the id of its stream entry
	ID       string // the task
	Kind     string
	Epoch    int64
	At       int64          // ms
	Deadline int64          // ms, 0 if it has none
	Fields   map[string]any // all fields, by the names in docs/reference/events.md
}

// Word returns a field, or "" if the event does not have it.
func (e Event) Word(name string) string { s, _ := e.Fields[name].(string); return s }

func (e Event) number(name string) int64 {
	n, _ := strconv.ParseInt(e.Word(name), 10, 64)
	return n
}

// Terminal reports whether the event is the end of a task.
func (e Event) Terminal() bool {
	switch e.Kind {
	case "task_completed", "task_failed", "task_cancelled", "task_timed_out":
		return true
	}
	return false
}

// ReadEvents returns the events of a stream entry.
func ReadEvents(entry redis.XMessage) (events []Event) {
	for _, about := range eventlog.Events(entry) {
		e := Event{Entry: entry.ID, Fields: about}
		e.ID, e.Kind = e.Word("task_id"), e.Word("kind")
		e.Epoch, e.At, e.Deadline = e.number("epoch"), e.number("at"), e.number("deadline_at")
		events = append(events, e)
	}
	return events
}

// Events returns all events in the streams of a namespace, partition by partition.
func (s *Stage) Events(q *queue.Queue) (all []Event) {
	s.Helper()
	for p := range q.Partitions() {
		all = append(all, s.stream(q, p)...)
	}
	return all
}

func (s *Stage) stream(q *queue.Queue, partition int) (all []Event) {
	s.Helper()
	const page = 5000
	for from := "-"; ; {
		entries, err := q.Client().XRangeN(s.Context(), q.EventsKey(partition), from, "+", page).Result()
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, ReadEvents(e)...)
		}
		if len(entries) < page {
			return all
		}
		from = "(" + entries[len(entries)-1].ID
	}
}
