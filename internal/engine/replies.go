package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/refusal"
)

// Scripts reply with arrays of strings and numbers. The functions below do not trust a reply: one of
// another shape is an error and never a panic.

// List returns a reply as an array of at least this many elements. If err is not nil, it returns err.
func List(reply any, err error, least int) ([]any, error) {
	if err != nil {
		return nil, err
	}
	elements, ok := reply.([]any)
	if !ok || len(elements) < least {
		return nil, Unexpected("answer", reply)
	}
	return elements, nil
}

// Elements returns a reply as an array of any length. It returns err if that is not nil.
func Elements(reply any, err error) ([]any, error) { return List(reply, err, 0) }

// Words reads a reply that begins with a word. It returns an error for the two refusals that all
// calls share: INVALID, with a field and a reason; and BROKEN, with a reason.
func Words(reply any, err error) ([]any, error) {
	words, err := List(reply, err, 1)
	if err != nil {
		return nil, err
	}
	switch Text(words[0]) {
	case "INVALID":
		if len(words) < 3 {
			return nil, Unexpected("answer", words)
		}
		return nil, refusal.Invalid(Text(words[1]), "%s", Text(words[2]))
	case "BROKEN":
		return nil, Broken(words[1:])
	}
	return words, nil
}

// Broken returns ErrBroken with the reason, which is the last of words.
func Broken(words []any) error {
	if len(words) == 0 {
		return refusal.ErrBroken
	}
	return fmt.Errorf("%w: %s", refusal.ErrBroken, Text(words[len(words)-1]))
}

// Unexpected returns the error for a reply of another shape, with the beginning of the reply.
func Unexpected(what string, reply any) error {
	return fmt.Errorf("unexpected %s %s", what, clip.Line(fmt.Sprint(reply), 300))
}

// Text returns an element as a string, or "" for nil.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// Number returns an element as a whole number, or 0 if it is not a number.
func Number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		if v == "" {
			return 0
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// Instant reads an element as ms since 1970. It returns the zero time for 0 or nil.
func Instant(v any) time.Time {
	if ms := Number(v); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Headers parses the headers of a task. If they are not a JSON object of strings, it returns nil.
func Headers(text string) map[string]string {
	if text == "" {
		return nil
	}
	var headers map[string]string
	if json.Unmarshal([]byte(text), &headers) != nil {
		return nil
	}
	return headers
}

// ErrNoWorker is refusal.ErrNotFound for a worker.
var ErrNoWorker error = noWorker{}

type noWorker struct{}

func (noWorker) Error() string        { return "no worker with this id has a lease" }
func (noWorker) Is(target error) bool { return target == refusal.ErrNotFound }
