package engine

import (
	"fmt"
	"strconv"
	"time"
)

// Scripts answer with arrays of words and numbers. These read them without
// trusting them: a reply of another shape is an error, never a panic.

// List is a reply that is an array of at least so many elements.
func List(reply any, err error, least int) ([]any, error) {
	if err != nil {
		return nil, err
	}
	elements, ok := reply.([]any)
	if !ok || len(elements) < least {
		return nil, fmt.Errorf("unexpected answer %.100v", reply)
	}
	return elements, nil
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

// Elements is a reply that is an array, of any length.
func Elements(reply any, err error) ([]any, error) { return List(reply, err, 0) }
