// Package taskjson reads tasks from JSON objects, as docs/reference/protocol.md ("Tasks in JSON") describes them.
package taskjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Error says what is wrong with a task in JSON, and where. It wraps the cause.
type Error struct {
	Byte int // position in the text, from 1
	Err  error
}

// Error begins with the position.
func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.Byte, e.Err) }

// Unwrap returns the cause, which is refusal.ErrInvalid.
func (e *Error) Unwrap() error { return e.Err }

func wrong(at int, field, format string, args ...any) error {
	return &Error{Byte: at, Err: refusal.Invalid(field, format, args...)}
}

// maxDepth is how deep the values of a task may be nested, with the object itself: the functions of Redis read it
// in an array, of up to 1000 levels.
const maxDepth = 999

// Read reads a task from a JSON object. It makes the checks that need no call to Redis; maxBytes is the limit of
// queue.Config.MaxBytes. It returns an *Error.
//
// A queue.Task has no back-off without a delay. So backoff, backoff_max and jitter need backoff_delay here, and do not
// change that of the kind.
func Read(text []byte, maxBytes int) (queue.Task, error) {
	var task queue.Task
	if err := Check(text); err != nil {
		return task, err
	}
	last, err := readObject(text, &task)
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

// Check returns an *Error if a text is not one JSON value in UTF-8.
func Check(text []byte) error {
	var value json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(text, &value); {
	case errors.As(err, &syntax) && int(syntax.Offset) >= len(text) && len(bytes.TrimSpace(text)) == 0:
		return wrong(1, "JSON", "is missing")
	case errors.As(err, &syntax) && strings.HasSuffix(syntax.Error(), "exceeded max depth"): // that of encoding/json
		return tooManyLevels(int(syntax.Offset))
	case errors.As(err, &syntax):
		return wrong(max(int(syntax.Offset), 1), "JSON", "is not valid: %s", syntax)
	case err != nil:
		return wrong(1, "JSON", "is not valid: %v", err)
	}
	if !utf8.Valid(text) {
		return wrong(firstNotUTF8(text), "JSON", "must be UTF-8")
	}
	if at := tooDeep(text); at > 0 {
		return tooManyLevels(at)
	}
	return nil
}

func tooManyLevels(at int) error {
	return wrong(at, "JSON", "is nested too deep: a payload may have %d levels", maxDepth-1)
}

func firstNotUTF8(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at + 1
		}
		at += size
	}
	return 1
}

// tooDeep returns the position where valid JSON has too many levels, or 0.
func tooDeep(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i + 1
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0
}

// readObject reads the members of an object. It returns the position of the end.
func readObject(text []byte, task *queue.Task) (int, error) {
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
	f, known := members[name]
	switch {
	case !known:
		near := names.Nearest(name, slices.Sorted(maps.Keys(members)))
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
