package engine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
)

// Scripts reply with arrays of strings and numbers. The functions below do not trust a reply: one of
// another shape is an error and never a panic.

// List returns a reply as an array of at least a number of elements. It returns err if that is not nil.
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

// Elements returns a reply as an array of any length. It returns err if that is not nil.
func Elements(reply any, err error) ([]any, error) { return List(reply, err, 0) }
