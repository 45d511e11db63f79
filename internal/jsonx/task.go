package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// ReadTask reads a task from a JSON object, as docs/reference/protocol.md ("Tasks in JSON") describes it. It makes the checks that need no call to Redis; maxBytes is the limit of
// queue.Config.MaxBytes. It returns an *Error.
//
// A queue.Task has no back-off without a delay. So backoff, backoff_max and jitter need backoff_delay here, and do not
// change that of the kind.
func ReadTask(text []byte, maxBytes int) (queue.Task, error) {
	var task queue.Task
	if err := Check(text); err != nil {
		return task, err
	}
	last, err := readTask(text, &task)
	if err == nil && task.Kind == "" {
		err = wrong(last, "kind", "is missing")
	} else if err == nil && strings.HasPrefix(task.Kind, "flow/") {
		err = wrong(last, "kind", "is for nodes of flows, which their runs enqueue: use another kind")
	}
	if err != nil {
		return queue.Task{}, err
	}
	if err := task.Check(maxBytes); err != nil {
		return queue.Task{}, &Error{Byte: 1, Err: err}
	}
	return task, nil
}

// readTask reads the members of an object. It returns the position of the end.
func readTask(text []byte, task *queue.Task) (int, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return 0, wrong(1, "task", `must be a JSON object, such as {"kind":"render","payload":{"page":"index"},"timeout":"30s"}`)
	}
	given, seen := map[string]bool{}, map[string]bool{}
	for in.More() {
		word, err := in.Token()
		if err != nil {
			return 0, fmt.Errorf("a text that was checked cannot be read: %w", err)
		}
		var raw json.RawMessage
		name, at := word.(string), int(in.InputOffset())
		if err := in.Decode(&raw); err != nil && err != io.EOF {
			return 0, fmt.Errorf("a text that was checked cannot be read: %w", err)
		}
		if seen[name] {
			return 0, wrong(at, shown(name), "is given twice")
		}
		seen[name], given[name] = true, true
		if err := setField(task, given, name, raw, at, int(in.InputOffset())-len(raw)+1); err != nil {
			return 0, err
		}
	}
	if task.Backoff.Delay == 0 && (given["backoff"] || given["backoff_max"] || given["backoff_max_ms"] || given["jitter"]) {
		return 0, wrong(1, "backoff_delay", "is missing: backoff, backoff_max and jitter need it")
	}
	return int(in.InputOffset()), nil
}

// setField sets the field that a member names. The name is at one position, and its value at another.
func setField(task *queue.Task, given map[string]bool, name string, raw json.RawMessage, nameAt, at int) error {
	f, known := taskMembers[name]
	switch {
	case !known:
		near := names.Nearest(name, slices.Sorted(maps.Keys(taskMembers)))
		if near != "" {
			near = ": did you mean " + near + "?"
		}
		return wrong(nameAt, shown(name), "is not a known name%s", near)
	case f.other != "" && given[f.other]:
		return wrong(nameAt, min(name, f.other), "%s", f.both)
	case f.raw:
	case string(raw) == "null":
		given[name] = false
		return nil
	}
	value := string(raw)
	if !f.raw && raw[0] == '"' {
		json.Unmarshal(raw, &value) // never fails: the text was checked
	} else if !f.raw && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return wrong(at, name, "must be a string or a number")
	}
	if value == "" && name != "payload_base64" {
		return wrong(at, name, "must not be empty: leave it out")
	}
	if why := f.set(task, value); why != nil {
		var invalid *refusal.InvalidError
		if errors.As(why, &invalid) {
			return wrong(at, name, "%s", invalid.Why)
		}
		return wrong(at, name, "%s", why)
	}
	return nil
}

// shown returns a name for a sentence.
func shown(name string) string {
	if names.Word(name) {
		return refusal.Clip(name)
	}
	return fmt.Sprintf("%q", refusal.Clip(name))
}
