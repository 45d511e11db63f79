package inspect

import (
	"time"

	"github.com/curfew-dev/curfew/internal/jsonx"
)

// ExportLine is one object of an export. Its Type determines which fields are set.
// docs/reference/events.md shows the JSON of each type.
type ExportLine struct {
	// Type is namespace, partition, queue, worker, task, index, stream or broken.
	Type      string
	Partition int
	// Name is the name of the namespace, queue or worker, or the id of the task. For an index it is the
	// part of the key after the first colon, for stream and broken the whole key without the root.
	Name string
	// Fields holds the stored fields, for partition, queue, worker and task.
	Fields map[string]string

	Payload []byte    // task: or nil
	Overdue bool      // task: its end is decided and not written yet
	ReadAt  time.Time // task: clock of Redis when it was read

	Index  string // index: the key without the root, up to the first colon
	Kind   string // index: zset, set, list, hash or string
	Member string // index: the member of a zset, set or list, or the field of a hash
	Score  float64
	Place  int64  // index: rank in a zset or list, from 0
	Value  string // index: the value of a hash field or string; broken: what is wrong

	Partitions int    // namespace: number of partitions
	Length     int64  // stream: number of entries
	Last       string // stream: newest id
}

// MarshalJSON encodes the line as ExportTo writes it.
func (l ExportLine) MarshalJSON() ([]byte, error) { return l.json(), nil }

func (l ExportLine) json() []byte {
	var o jsonx.Object
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

// entry adds the fields of an entry of an index.
func (l ExportLine) entry(o *jsonx.Object) {
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

// size returns the approximate size of a line in bytes.
func (l ExportLine) size() int {
	n := 100 + len(l.Payload) + len(l.Member) + len(l.Value)
	for name, value := range l.Fields {
		n += len(name) + len(value)
	}
	return n
}
