package queue

import "time"

// Event is one transition, written by the script that made it. docs/events.md lists
// the kinds and what each says.
type Event struct {
	Kind     string // "task_completed", …; empty: somebody else put it into the stream
	TaskID   string
	TaskKind string
	Queue    string
	At       time.Time // the clock reading of its script
	Epoch    int64
	Attempt  int
	Worker   string
	Owner    string // agent_execution_id: of a child, the task that it belongs to
	Root     string // workflow_run_id: of a child, the root of its tree

	Partition int
	ID        string // of the stream's entry: with the partition, an event's identity
	// Fields is all that this kind says beyond that, by the names in the stream.
	Fields map[string]string
}

// readEvent reads an entry without trusting it: what has not the form of its field
// stays in Fields as it is.
func readEvent(partition int, id streamID, words []any) Event {
	e := Event{Partition: partition, ID: id.String(), At: time.UnixMilli(int64(id.ms)), Fields: map[string]string{}}
	for i := 0; i+1 < len(words); i += 2 {
		name, value := text(words[i]), text(words[i+1])
		if !e.set(name, value) {
			e.Fields[name] = value
		}
	}
	return e
}

// set takes what every event has; it returns false for anything else.
func (e *Event) set(name, value string) bool {
	switch name {
	case "kind":
		e.Kind = value
	case "task_id":
		e.TaskID = value
	case "task_kind":
		e.TaskKind = value
	case "queue":
		e.Queue = value
	case "worker":
		e.Worker = value
	case "agent_execution_id":
		e.Owner = value
	case "workflow_run_id":
		e.Root = value
	case "at", "epoch", "attempt":
		if value == "" {
			return true // a caller that is no claim has none
		}
		n, ok := parseDecimal(value)
		if !ok || n > maxExact {
			return false
		}
		switch name {
		case "at":
			e.At = time.UnixMilli(int64(n))
		case "epoch":
			e.Epoch = int64(n)
		default:
			e.Attempt = int(n)
		}
	default:
		return false
	}
	return true
}

// MarshalJSON writes one flat object with the names of the stream, and "partition" and
// "id". Numbers and instants (ms) are numbers; the names that end with _base64 hold
// what is no UTF-8.
func (e Event) MarshalJSON() ([]byte, error) {
	var o object
	o.word("kind", e.Kind)
	o.word("task_id", e.TaskID)
	o.word("task_kind", e.TaskKind)
	o.word("queue", e.Queue)
	o.number("at", e.At.UnixMilli())
	o.number("epoch", e.Epoch)
	o.number("attempt", int64(e.Attempt))
	o.word("worker", e.Worker)
	if e.Owner != "" || e.Root != "" {
		o.word("agent_execution_id", e.Owner)
		o.word("workflow_run_id", e.Root)
	}
	o.number("partition", int64(e.Partition))
	o.word("id", e.ID)
	o.fields(e.Fields)
	return o.close(), nil
}
