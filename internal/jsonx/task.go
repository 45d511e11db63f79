package jsonx

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// ReadTask reads a task from the text of a JSON object, as Value.Task does.
func ReadTask(text []byte, maxBytes int) (queue.Task, error) {
	v, err := Parse(text)
	if err != nil {
		return queue.Task{}, err
	}
	return v.Task(maxBytes)
}

// Task returns the task that an object is, as docs/reference/protocol.md ("Tasks in JSON") describes it. It makes the checks that
// need no call to Redis; maxBytes is the limit of queue.Config.MaxBytes. It returns an *Error.
//
// A queue.Task has no back-off without a delay. So backoff, backoff_max and jitter need backoff_delay here, and do not
// change that of the kind.
func (v Value) Task(maxBytes int) (task queue.Task, err error) {
	if !v.IsObject() {
		return task, v.wrong(v.from, "task", `must be a JSON object, such as {"kind":"render","payload":{"page":"index"},"timeout":"30s"}`)
	}
	given := map[string]bool{} // without those that are null
	for m := range v.Members() {
		if err := setField(&task, given, m); err != nil {
			return queue.Task{}, err
		}
	}
	switch {
	case task.Backoff.Delay == 0 && (given["backoff"] || given["backoff_max"] || given["backoff_max_ms"] || given["jitter"]):
		err = refusal.Invalid("backoff_delay", "is missing: backoff, backoff_max and jitter need it")
	case task.Kind == "":
		err = refusal.Invalid("kind", "is missing")
	case strings.HasPrefix(task.Kind, "flow/"):
		err = refusal.Invalid("kind", "is for nodes of flows, which their runs enqueue: use another kind")
	default:
		err = task.Check(maxBytes)
	}
	if err != nil {
		return queue.Task{}, v.fault(v.from, err)
	}
	return task, nil
}

// setField sets the field that a member names.
func setField(task *queue.Task, given map[string]bool, m Member) error {
	f, known := taskMembers[m.Name]
	atName := m.nameEnd - 1
	switch {
	case m.Twice:
		return m.wrong(atName, shown(m.Name), "is given twice")
	case !known:
		return m.fault(atName, Unknown(m.Name, slices.Sorted(maps.Keys(taskMembers))))
	case f.other != "" && given[f.other]:
		return m.wrong(atName, min(m.Name, f.other), "%s", f.both)
	case !f.raw && m.IsNull():
		return nil
	}
	given[m.Name] = true
	value, isWord := "", false
	if !f.raw {
		value, isWord = m.Word()
	}
	if !isWord {
		value = string(m.Text())
	}
	if !f.raw && !isWord && value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return m.wrong(m.from, m.Name, "must be a string or a number")
	}
	if value == "" && m.Name != "payload_base64" {
		return m.wrong(m.from, m.Name, "must not be empty: leave it out")
	}
	err := f.set(task, value)
	var invalid *refusal.InvalidError
	switch {
	case errors.As(err, &invalid):
		return m.wrong(m.from, m.Name, "%s", invalid.Why)
	case err != nil:
		return m.wrong(m.from, m.Name, "%s", err)
	}
	return nil
}
