package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/refusal"
)

// Error says what is wrong with a text in JSON, and where. It wraps the cause.
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
