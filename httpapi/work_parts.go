package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
)

// readParts reads an object, or a list of objects, that is a member of a body: with the checks that readObject makes. is reports
// whether the member is of such a type.
func readParts(into reflect.Value, name string, value json.RawMessage) (f *failure, is bool) {
	switch t := into.Type(); {
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		into.Set(reflect.New(t.Elem()))
		return readPart(into.Elem(), name, value), true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		var texts []json.RawMessage
		if json.Unmarshal(value, &texts) != nil {
			return wrong(name, "must be a list of objects"), true
		}
		into.Set(reflect.MakeSlice(t, len(texts), len(texts)))
		for i, text := range texts {
			if f := readPart(into.Index(i), name+"["+strconv.Itoa(i)+"]", text); f != nil {
				return f, true
			}
		}
		return nil, true
	}
	return nil, false
}

// readPart reads an object of a body. The failure names its place in the body.
func readPart(into reflect.Value, name string, text json.RawMessage) *failure {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		return wrong(name, "must be an object")
	}
	return within(readObject(text, into.Addr().Interface()), name)
}

// within adds the name of the enclosing object to a failure of one of its members.
func within(f *failure, name string) *failure {
	if f == nil {
		return nil
	}
	field := name
	if f.Problem.Error.Field != "" {
		field += "." + f.Problem.Error.Field
	}
	f.Problem.Error.Sentence = name + ": " + f.Problem.Error.Sentence
	return f.of(field)
}

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
