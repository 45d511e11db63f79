package inspect

import (
	"time"

	"github.com/curfew-dev/curfew/internal/jsonline"
)

// ExportLine is one object of an export. Its Type says which fields are set;
// docs/events.md shows the JSON of each.
type ExportLine struct {
	// Type is namespace, partition, queue, worker, task, index, stream or broken.
	Type      string
	Partition int
	// Name is whose line it is: the namespace, a queue, a worker, a task's id; of an
	// index, what its key has behind the colon; of a stream and of what is broken, the key.
	Name string
	// Fields is the hash as it is stored, for partition, queue, worker and task.
	Fields map[string]string

	Payload []byte    // of a task; nil: none
	Overdue bool      // of a task: its end is decided and not written yet
	ReadAt  time.Time // of a task, on the clock of Redis

	Index  string // of an index: its key without the root, up to the colon
	Kind   string // zset, set, list, hash or string
	Member string // of a zset, set or list; the field of a hash
	Score  float64
	Place  int64  // in a zset or list, from 0
	Value  string // of a hash or a string; of what is broken, why

	Partitions int    // of the namespace
	Length     int64  // of a stream
	Last       string // of a stream, the newest id
}

// MarshalJSON writes the line as ExportTo does.
func (l ExportLine) MarshalJSON() ([]byte, error) { return l.json(), nil }

func (l ExportLine) json() []byte {
	var o jsonline.Object
	o.Word("type", l.Type)
	if l.Type == "namespace" {
		o.Word("namespace", l.Name)
		o.Number("partitions", int64(l.Partitions))
		o.Number("format", 1)
		return o.Close()
	}
	o.Number("partition", int64(l.Partition))
	switch l.Type {
	case "partition":
		o.Object("fields", l.Fields)
	case "queue", "worker":
		o.Word(l.Type, l.Name)
		o.Object("fields", l.Fields)
	case "task":
		o.Word("id", l.Name)
		o.Number("read_at", l.ReadAt.UnixMilli())
		o.Flag("overdue", l.Overdue)
		if l.Payload != nil {
			o.Word("payload", string(l.Payload))
		}
		o.Object("fields", l.Fields)
	case "index":
		o.Word("index", l.Index)
		if l.Name != "" {
			o.Word("of", l.Name)
		}
		o.Word("kind", l.Kind)
		l.entry(&o)
	case "stream":
		o.Word("stream", l.Name)
		o.Number("length", l.Length)
		o.Word("last", l.Last)
	default:
		o.Word("key", l.Name)
		o.Word("error", l.Value)
	}
	return o.Close()
}

// entry writes what one entry of an index holds.
func (l ExportLine) entry(o *jsonline.Object) {
	if l.Kind != "string" {
		o.Word("member", l.Member)
	}
	switch l.Kind {
	case "zset":
		o.Float("score", l.Score)
		o.Number("place", l.Place)
	case "list":
		o.Number("place", l.Place)
	case "hash", "string":
		o.Word("value", l.Value)
	}
}

// size is about how much a line weighs.
func (l ExportLine) size() int {
	n := 100 + len(l.Payload) + len(l.Member) + len(l.Value)
	for name, value := range l.Fields {
		n += len(name) + len(value)
	}
	return n
}
