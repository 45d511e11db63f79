package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Error is a fault in a text, with its position. It wraps the cause, which is refusal.ErrInvalid.
type Error struct {
	Line int // from 1
	Byte int // in the line, from 1
	Err  error
}

// Error begins with the position. The line is left out if it is the first one, since most texts have one.
func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, byte %d: %v", e.Line, e.Byte, e.Err)
	}
	return fmt.Sprintf("byte %d: %v", e.Byte, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Value is a value within a text that is valid, and reads it without errors. It shares the memory of the text.
type Value struct {
	all      []byte
	from, to int
}

// Parse checks that a text is one JSON value in UTF-8. It returns an *Error.
func Parse(text []byte) (Value, error) {
	v := Checked(text)
	if !json.Valid(text) {
		return Value{}, v.invalid()
	}
	if !utf8.Valid(text) {
		return Value{}, v.wrong(firstNotUTF8(text), "JSON", "must be UTF-8")
	}
	if _, tooDeep := measure(v.Text()); tooDeep >= 0 {
		return Value{}, v.tooManyLevels(v.from + tooDeep)
	}
	return v, nil
}

// invalid returns the error for a text that is not valid. Only json.Unmarshal says why, and it copies the text, so Parse asks json.Valid first.
func (v Value) invalid() error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(v.all, new(json.RawMessage)); !errors.As(err, &syntax) {
		return v.wrong(0, "JSON", "is not valid: %v", err)
	}
	at := max(int(syntax.Offset)-1, 0)
	switch {
	case len(bytes.TrimSpace(v.all)) == 0:
		return v.wrong(0, "JSON", "is missing")
	case strings.HasSuffix(syntax.Error(), "exceeded max depth"): // of encoding/json
		return v.tooManyLevels(at)
	}
	return v.wrong(at, "JSON", "is not valid: %s", syntax)
}

func (v Value) tooManyLevels(at int) error {
	return v.wrong(at, "JSON", "is nested too deep: a payload may have %d levels", maxDepth-1)
}

// Checked returns the value of a text that is known to be valid, such as one that this package has written.
func Checked(text []byte) Value {
	const space = " \t\r\n"
	return Value{text, len(text) - len(bytes.TrimLeft(text, space)), len(bytes.TrimRight(text, space))}
}

// Text returns the text of the value, without the space around it.
func (v Value) Text() []byte { return v.all[v.from:v.to:v.to] }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return v.all[v.from] == '{' }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.all[v.from] == '[' }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.all[v.from] == 'n' }

// At returns where the value begins in the text, from 0.
func (v Value) At() int { return v.from }

// Scalar returns a value that is no object and no list, as Decode would.
func (v Value) Scalar() any {
	switch text := v.Text(); text[0] {
	case '"':
		word, _ := v.Word()
		return word
	case 't', 'f':
		return text[0] == 't'
	case 'n':
		return nil
	default:
		return json.Number(text)
	}
}

// Decode decodes the value into what a pointer points to. Numbers that go into an any keep their digits.
func (v Value) Decode(into any) error {
	in := json.NewDecoder(bytes.NewReader(v.Text()))
	in.UseNumber()
	return in.Decode(into)
}

// Word returns the text that a string means. is reports whether the value is a string.
func (v Value) Word() (text string, is bool) {
	quoted := v.Text()
	switch {
	case quoted[0] != '"':
		return "", false
	case bytes.IndexByte(quoted, '\\') < 0:
		return string(quoted[1 : len(quoted)-1]), true
	}
	json.Unmarshal(quoted, &text) // never fails: the text is valid
	return text, true
}

// Member is a member of an object.
type Member struct {
	Name  string
	Twice bool // there is a member of this name before it
	Value
	nameEnd int // of its name in the text
}

// Members returns the members of an object.
func (v Value) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		seen := map[string]bool{}
		var m *Member
		for part := range v.Elements() {
			if m == nil {
				name, _ := part.Word()
				m = &Member{Name: name, Twice: seen[name], nameEnd: part.to}
				continue
			}
			m.Value = part
			if !yield(*m) {
				return
			}
			seen[m.Name], m = true, nil
		}
	}
}

// Elements returns the values of a list. For an object, it returns names and values in turn. Other values have none.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.IsObject() && !v.IsList() {
			return
		}
		for at := v.from + 1; ; {
			for strings.IndexByte(separators, v.all[at]) >= 0 {
				at++
			}
			if at >= v.to-1 {
				return
			}
			size, _ := measure(v.all[at:v.to])
			if !yield(Value{v.all, at, at + size}) {
				return
			}
			at += size
		}
	}
}

const separators = " \t\r\n,:"

// maxDepth is how deep the values of a task may be nested, with the object itself: the functions of Redis read it
// in an array, of up to 1000 levels.
const maxDepth = 999

// measure returns the size of the value with which a valid text begins, and the first position where it has too many levels, or -1.
// The text is valid, so that only its strings and brackets matter.
func measure(text []byte) (size, tooDeep int) {
	depth, quoted := 0, false
	tooDeep = -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1, tooDeep
			}
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth && tooDeep < 0 {
				tooDeep = i
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, tooDeep
			} else if depth < 0 { // the end of what a number, true, false or null is in
				return i, tooDeep
			}
		case depth == 0 && strings.IndexByte(separators, c) >= 0:
			return i, tooDeep
		}
	}
	return len(text), tooDeep
}

// wrong returns the error for a fault at a position of the text that has the value.
func (v Value) wrong(at int, field, format string, args ...any) error {
	return v.fault(at, refusal.Invalid(field, format, args...))
}

func (v Value) fault(at int, err error) error {
	before := v.all[:min(at, len(v.all))]
	return &Error{1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n'), err}
}

func firstNotUTF8(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return 0
}

// Unknown returns the error for a name that is not among those that an object can have. It is an *refusal.InvalidError.
func Unknown(name string, known []string) error {
	return refusal.Invalid(shown(name), "is not a known name%s", names.Hint(name, known))
}

// shown returns a name for a sentence.
func shown(name string) string {
	if names.Word(name) {
		return refusal.Clip(name)
	}
	return fmt.Sprintf("%q", refusal.Clip(name))
}
