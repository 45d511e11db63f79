package events

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
)

// Event is one transition, or one refused call. The script that made the transition wrote the event.
// docs/reference/events.md lists the kinds and their fields.
type Event struct {
	Kind      string // "task_completed", …; empty if another program put the entry into the stream
	TaskID    string
	TaskKind  string
	Queue     string
	At        time.Time // clock of Redis in the script
	CreatedAt time.Time // when the task was created
	StartedAt time.Time // when its newest attempt started; zero if there was none
	Epoch     int64
	Attempt   int
	Worker    string
	Owner     string // agent_execution_id: the owner of a child, "" for other tasks
	Root      string // workflow_run_id: the root of a child's tree, "" for other tasks

	Partition int
	// Number counts the events of a partition from 1. Partition and Number identify an event. It is 0
	// if another program put the entry into the stream.
	Number int64
	ID     string // id of the stream entry, which several events of one call can share
	// Fields holds the further fields of this kind, by their names in the stream.
	Fields map[string]string
}

// In returns the events of a stream entry of a partition, for a program that reads the stream
// itself. They have the same ID and At. An entry that another program put into the stream is
// returned as one event without a kind.
func In(partition int, entry redis.XMessage) []Event {
	id, _ := parseStreamID(entry.ID)
	base := Event{Partition: partition, ID: entry.ID, At: time.UnixMilli(int64(id.ms))}
	first, at, lines := ourEntry(entry.Values)
	if first == 0 {
		base.Fields = map[string]string{}
		for name, value := range entry.Values {
			base.Fields[name] = engine.Text(value)
		}
		return []Event{base}
	}
	var events []Event
	base.At = at
	for line := range strings.Lines(lines) {
		e := base
		e.Number = first + int64(len(events))
		e.read(strings.TrimSuffix(line, "\n"))
		events = append(events, e)
	}
	return events
}

// ourEntry decodes an entry of store/events.lua. If another program wrote the entry, first is 0.
func ourEntry(values map[string]any) (first int64, at time.Time, lines string) {
	n, ok := jsonx.Decimal(engine.Text(values["first"]))
	ms, okAt := jsonx.Decimal(engine.Text(values["at"]))
	lines = engine.Text(values["events"])
	if !ok || !okAt || n > jsonx.MaxExact || ms > jsonx.MaxExact || lines == "" {
		return 0, at, ""
	}
	return int64(n), time.UnixMilli(int64(ms)), lines
}

// read decodes a line of store/events.lua. It ignores words of the wrong form, because any program
// can write into the stream.
func (e *Event) read(line string) {
	e.Fields = map[string]string{}
	words := strings.Split(line, " ")
	for i, set := range eventWords {
		if i < len(words) && words[i] != "-" {
			set(e, words[i])
		}
	}
	for _, word := range words[min(len(words), len(eventWords)):] {
		name, value, _ := strings.Cut(word, "=")
		e.Fields[name] = unescape(value)
	}
	if owner := names.OwnerOf(e.TaskID); owner != "" {
		e.Owner, e.Root = owner, names.RootOf(e.TaskID)
	}
}

// eventWords are the words with which every line begins.
var eventWords = []func(e *Event, word string){
	func(e *Event, word string) { e.Kind = word },
	func(e *Event, word string) { e.TaskID = unescape(word) },
	func(e *Event, word string) { e.TaskKind = word },
	func(e *Event, word string) { e.Queue = word },
	func(e *Event, word string) { e.CreatedAt = eventInstant(word) },
	func(e *Event, word string) { e.StartedAt = eventInstant(word) },
	func(e *Event, word string) { e.Epoch = eventNumber(word) },
	func(e *Event, word string) { e.Attempt = int(eventNumber(word)) },
	func(e *Event, word string) { e.Worker = unescape(word) },
}

func eventNumber(word string) int64 {
	if n, ok := jsonx.Decimal(word); ok && n <= jsonx.MaxExact {
		return int64(n)
	}
	return 0
}

func eventInstant(word string) time.Time {
	if ms := eventNumber(word); ms > 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// unescape undoes the escapes of store/events.lua. It returns an invalid text unchanged.
func unescape(word string) string {
	if text, err := url.PathUnescape(word); err == nil {
		return text
	}
	return word
}

// instantText returns the text of an instant in the stream.
func instantText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// MarshalJSON returns one flat object with the field names of the stream, and "partition", "number"
// and "id". Numbers and instants (in ms) are JSON numbers. A value that is not valid UTF-8 is
// encoded in base64, and its name ends with _base64.
func (e Event) MarshalJSON() ([]byte, error) {
	var o jsonx.Object
	o.Word("kind", e.Kind)
	o.Word("task_id", e.TaskID)
	o.Word("task_kind", e.TaskKind)
	o.Word("queue", e.Queue)
	o.Number("at", e.At.UnixMilli())
	o.Field("created_at", instantText(e.CreatedAt))
	o.Field("started_at", instantText(e.StartedAt))
	o.Number("epoch", e.Epoch)
	o.Number("attempt", int64(e.Attempt))
	o.Word("worker", e.Worker)
	if e.Owner != "" || e.Root != "" {
		o.Word("agent_execution_id", e.Owner)
		o.Word("workflow_run_id", e.Root)
	}
	o.Number("partition", int64(e.Partition))
	o.Number("number", e.Number)
	o.Word("id", e.ID)
	o.Fields(e.Fields)
	return o.Close(), nil
}
