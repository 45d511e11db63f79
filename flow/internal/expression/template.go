package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Template is a value with expressions in its texts: {{ inputs.parameters.name }}. A text that is one expression yields
// the value of the expression; in a longer text each expression is replaced by its text.
type Template struct {
	value any // texts with expressions are *text
	reads [][]string
}

// text is a text with expressions between its parts: parts[0], expressions[0], parts[1], …
type text struct {
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
		for name, item := range v {
			compiled, err := t.compile(path+"."+name, item, variables)
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
	x := &text{}
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

// Value returns the value with its expressions evaluated.
func (t *Template) Value(variables map[string]any) (any, error) { return evaluate(t.value, variables) }

func evaluate(value any, variables map[string]any) (any, error) {
	switch v := value.(type) {
	case *text:
		return v.evaluate(variables)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			evaluated, err := evaluate(item, variables)
			if err != nil {
				return nil, err
			}
			list[i] = evaluated
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			evaluated, err := evaluate(item, variables)
			if err != nil {
				return nil, err
			}
			object[name] = evaluated
		}
		return object, nil
	}
	return value, nil
}

func (x *text) evaluate(variables map[string]any) (any, error) {
	if len(x.expressions) == 1 && x.parts[0] == "" && x.parts[1] == "" {
		return x.expressions[0].Value(variables)
	}
	var b strings.Builder
	for i, part := range x.parts {
		b.WriteString(part)
		if i == len(x.expressions) {
			break
		}
		v, err := x.expressions[i].Value(variables)
		if err != nil {
			return nil, err
		}
		if s, ok := v.(string); ok {
			b.WriteString(s)
		} else {
			written, err := plainJSON(v)
			if err != nil {
				return nil, fmt.Errorf("%q yields a value that is not JSON", clip(x.expressions[i].source))
			}
			b.WriteString(written)
		}
		if b.Len() > maxText {
			return nil, fmt.Errorf("a text with expressions has more than %d bytes", maxText)
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
