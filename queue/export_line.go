package queue

import "time"

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
	var o object
	o.word("type", l.Type)
	if l.Type == "namespace" {
		o.word("namespace", l.Name)
		o.number("partitions", int64(l.Partitions))
		o.number("format", 1)
		return o.close()
	}
	o.number("partition", int64(l.Partition))
	switch l.Type {
	case "partition":
		o.object("fields", l.Fields)
	case "queue", "worker":
		o.word(l.Type, l.Name)
		o.object("fields", l.Fields)
	case "task":
		o.word("id", l.Name)
		o.number("read_at", l.ReadAt.UnixMilli())
		o.flag("overdue", l.Overdue)
		if l.Payload != nil {
			o.word("payload", string(l.Payload))
		}
		o.object("fields", l.Fields)
	case "index":
		o.word("index", l.Index)
		if l.Name != "" {
			o.word("of", l.Name)
		}
		o.word("kind", l.Kind)
		l.entry(&o)
	case "stream":
		o.word("stream", l.Name)
		o.number("length", l.Length)
		o.word("last", l.Last)
	default:
		o.word("key", l.Name)
		o.word("error", l.Value)
	}
	return o.close()
}

// entry writes what one entry of an index holds.
func (l ExportLine) entry(o *object) {
	if l.Kind != "string" {
		o.word("member", l.Member)
	}
	switch l.Kind {
	case "zset":
		o.float("score", l.Score)
		o.number("place", l.Place)
	case "list":
		o.number("place", l.Place)
	case "hash", "string":
		o.word("value", l.Value)
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
