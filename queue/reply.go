package queue

import (
	"fmt"
	"strconv"
	"time"
)

// Scripts answer with arrays of words and numbers. These read them without
// trusting them: a reply of another shape is an error, never a panic.

// list is a reply that is an array of at least so many elements.
func list(reply any, err error, least int) ([]any, error) {
	if err != nil {
		return nil, err
	}
	elements, ok := reply.([]any)
	if !ok || len(elements) < least {
		return nil, fmt.Errorf("unexpected answer %.100v", reply)
	}
	return elements, nil
}

// text is an element as a string, "" for nil.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// number is an element as a whole number, 0 if it is none.
func number(v any) int64 {
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

// instant is an element that is ms since 1970, the zero time for none.
func instant(v any) time.Time {
	if ms := number(v); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// elements is a reply that is an array, of any length.
func elements(reply any, err error) ([]any, error) { return list(reply, err, 0) }
