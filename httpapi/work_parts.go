package httpapi

import (
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
)

// spanOf returns a duration that is given as a text with a unit, or as a number of ms under name_ms.
func spanOf(name string, text *string, ms *int64, most time.Duration) (time.Duration, *failure) {
	switch {
	case text != nil && ms != nil:
		return 0, wrong(name, "is given with and without _ms: give one of the two")
	case ms != nil:
		if *ms < 0 || *ms > most.Milliseconds() {
			return 0, wrong(name+"_ms", "%d must be 0 to %d", *ms, most.Milliseconds())
		}
		return time.Duration(*ms) * time.Millisecond, nil
	case text != nil:
		d, err := duration.Parse(*text)
		if err != nil {
			return 0, wrong(name, "%v", err)
		}
		if d < 0 || d > most {
			return 0, wrong(name, "must be 0s to %v", most)
		}
		return d, nil
	}
	return 0, nil
}

// placeOf returns the partition of a task's id, which stands in a body under name.
func placeOf(q *queue.Queue, name, id string) (int, *failure) {
	p, err := queue.PartitionOf(id)
	if err == nil && p >= q.Partitions() {
		return 0, wrong(name, "is in partition %d, but this namespace has %d partitions: it is the id of another namespace", p, q.Partitions())
	}
	if err != nil {
		return 0, failureOf(err).of(name)
	}
	return p, nil
}

// warn logs keys that a call could not read or write.
func (c *call) warn(errs []string) {
	for _, text := range errs {
		c.server.log.Warn("A key cannot be read or written", "namespace", c.q.Namespace(), "error", text)
	}
}
