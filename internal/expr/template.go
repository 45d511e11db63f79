package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr/value"
)

// Template is a value with expressions in its texts: {{ inputs.parameters.name }}. A text that is one expression yields
// the value of the expression; in a longer text each expression is replaced by its text.
type Template struct {
	value any // texts with expressions are *mixed
	reads [][]string
}

// mixed is a text with expressions between its parts: parts[0], expressions[0], parts[1], …
type mixed struct {
	parts       []string
	expressions []*Expression
}

// CompileTemplate compiles the expressions in a value, which is decoded JSON. The errors have the path of the text below
// the value, such as ".items[2]".
func CompileTemplate(value any, variables []string) (*Template, error) {
	t := &Template{}
	var err error
	t.value, err = t.compile("", value, variables)
	return t, err
}

// PathError is an error in a text at a path below a value.
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string { return e.Err.Error() }
func (e *PathError) Unwrap() error { return e.Err }

func (t *Template) compile(path string, value any, variables []string) (any, error) {
	switch v := value.(type) {
	case string:
		compiled, err := t.compileText(v, variables)
		if err != nil {
			return nil, &PathError{path, err}
		}
		return compiled, nil
	case []any:
		list, all := make([]any, len(v)), []error(nil)
		for i, item := range v {
			compiled, err := t.compile(fmt.Sprintf("%s[%d]", path, i), item, variables)
			list[i], all = compiled, append(all, err)
		}
		return list, errors.Join(all...)
	case map[string]any:
		object, all := make(map[string]any, len(v)), []error(nil)
		for _, name := range slices.Sorted(maps.Keys(v)) { // the errors have an order
			compiled, err := t.compile(path+"."+name, v[name], variables)
			object[name], all = compiled, append(all, err)
		}
		return object, errors.Join(all...)
	}
	return value, nil
}

func (t *Template) compileText(source string, variables []string) (any, error) {
	if !strings.Contains(source, "{{") {
		return source, nil
	}
	x := &mixed{}
	rest := source
	for {
		before, after, found := strings.Cut(rest, "{{")
		x.parts = append(x.parts, before)
		if !found {
			return x, nil
		}
		inside, after, closed := strings.Cut(after, "}}")
		if !closed {
			return nil, errors.New("the text has {{ without }}: close the expression")
		}
		e, err := Compile(strings.TrimSpace(inside), variables)
		if err != nil {
			return nil, err
		}
		x.expressions, t.reads = append(x.expressions, e), append(t.reads, e.Reads()...)
		rest = after
	}
}

// Reads returns what the expressions read, as Expression.Reads does.
func (t *Template) Reads() [][]string { return t.reads }

// Value returns the value with its expressions evaluated. The errors are always the same for the same variables.
func (t *Template) Value(variables map[string]any) (any, error) {
	e := evaluation{variables, value.MaxBytes}
	return e.value(t.value)
}

// evaluation evaluates one template. Each text that it makes takes from the room that is left.
type evaluation struct {
	variables map[string]any
	room      int
}

func (e *evaluation) value(v any) (any, error) {
	switch v := v.(type) {
	case *mixed:
		return e.text(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			evaluated, err := e.value(item)
			if err != nil {
				return nil, err
			}
			list[i] = evaluated
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) { // so that the first error is always the same
			evaluated, err := e.value(v[name])
			if err != nil {
				return nil, err
			}
			object[name] = evaluated
		}
		return object, nil
	}
	return value.Canonical(v, &e.room) // a text without expressions, a number, true, false or null
}

func (e *evaluation) text(x *mixed) (any, error) {
	if len(x.expressions) == 1 && x.parts[0] == "" && x.parts[1] == "" {
		return x.expressions[0].value(e.variables, &e.room)
	}
	var b strings.Builder
	for i, part := range x.parts {
		if e.room -= len(part); e.room < 0 {
			return nil, value.ErrTooLarge
		}
		b.WriteString(part)
		if i == len(x.expressions) {
			break
		}
		v, err := x.expressions[i].value(e.variables, &e.room)
		if err != nil {
			return nil, err
		}
		if s, ok := v.(string); ok {
			b.WriteString(s)
		} else {
			written, err := plainJSON(v)
			if err != nil {
				return nil, fmt.Errorf("%q yields a value that is not JSON", clip.Line(x.expressions[i].source, quoted))
			}
			b.WriteString(written)
		}
	}
	return b.String(), nil
}

// plainJSON writes a value as JSON in which <, > and & are themselves, since people read the text around it.
func plainJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
