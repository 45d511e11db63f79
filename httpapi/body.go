package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// task stands for a task in the type of a body. It is the text of an object that package jsonx reads.
type task json.RawMessage

// UnmarshalJSON keeps the text.
func (t *task) UnmarshalJSON(text []byte) error {
	*t = append((*t)[:0], text...)
	return nil
}

// read reads a task. name is its place in the body, "" for the body itself.
func (t task) read(name string, maxBytes int) (queue.Task, *failure) {
	read, err := jsonx.ReadTask(t, math.MaxInt)
	f := contentTooLarge("payload", len(read.Payload), maxBytes)
	if f == nil {
		f = contentTooLarge("headers", sizeOf(read.Headers), maxBytes)
	}
	if err != nil {
		f = failureOf(err)
	}
	if f == nil {
		return read, nil
	}
	if field := f.Problem.Error.Field; name != "" {
		f.of(strings.TrimSuffix(name+"."+field, "."))
		f.Problem.Error.Sentence = name + ": " + f.Problem.Error.Sentence
	}
	return read, f
}

// read reads the body into a struct. It refuses unknown members, those that are given twice, and leaves no member out that the
// struct needs: one whose tag has no omitempty.
func (c *call) read(into any) *failure {
	if c.raw == nil && c.route.Bare {
		return nil
	}
	return readObject(c.raw, into)
}

func readObject(text []byte, into any) *failure {
	var at *jsonx.Error
	if err := jsonx.Check(text); errors.As(err, &at) {
		return fail(http.StatusBadRequest, "invalid", "the body is not valid: %v", err).of("body")
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		return fail(http.StatusBadRequest, "invalid", `the body must be a JSON object, such as {"name":"value"}`).of("body")
	}
	fields, order := fieldsOf(reflect.ValueOf(into).Elem())
	in := json.NewDecoder(bytes.NewReader(text))
	in.Token()
	present := map[string]bool{}
	for in.More() {
		word, _ := in.Token()
		name, _ := word.(string)
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return fail(http.StatusBadRequest, "invalid", "the body is not valid: %v", err).of("body")
		}
		field, exists := fields[name]
		switch {
		case !exists:
			return unknownName(name, "member of the body", order)
		case present[name]:
			return wrong(name, "is given twice")
		}
		present[name] = true
		if f := setMember(field, name, value); f != nil {
			return f
		}
	}
	for _, name := range order {
		if fields[name].needed && !present[name] {
			return wrong(name, "is missing%s", fields[name].advice)
		}
	}
	return nil
}

// bodyField is a member that a body can have.
type bodyField struct {
	value  reflect.Value
	needed bool
	advice string // if it is missing: the tag missing of the field
}

func fieldsOf(v reflect.Value) (fields map[string]bodyField, known []string) {
	fields = map[string]bodyField{}
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		advice := v.Type().Field(i).Tag.Get("missing")
		if advice != "" {
			advice = ": " + advice
		}
		fields[name] = bodyField{v.Field(i), !strings.HasPrefix(options, "omit"), advice}
		known = append(known, name)
	}
	slices.Sort(known)
	return fields, known
}

func setMember(field bodyField, name string, value json.RawMessage) *failure {
	if _, any := field.value.Interface().(json.RawMessage); any {
		field.value.Set(reflect.ValueOf(value))
		return nil
	}
	if string(value) == "null" {
		if field.needed {
			return wrong(name, "must not be null")
		}
		return nil
	}
	if f, ok := readParts(field.value, name, value); ok {
		return f
	}
	if err := json.Unmarshal(value, field.value.Addr().Interface()); err != nil {
		return wrong(name, "must be %s", typeInWords(field.value.Type()))
	}
	return nil
}

// typeInWords describes the JSON type of a value, for error texts.
func typeInWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeInWords(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a text in base64"
		}
		return "a list, and each part of it " + typeInWords(t.Elem())
	case reflect.Map:
		return "an object, and each value in it " + typeInWords(t.Elem())
	}
	return "an object"
}

// either returns the bytes of a value that is given as JSON or in base64. name is its name.
func either(name string, value json.RawMessage, inBase64 *string, most int) ([]byte, *failure) {
	if value != nil && inBase64 != nil {
		return nil, wrong(name, "is given as JSON and in base64: give one of the two")
	}
	text := []byte(value)
	if inBase64 != nil {
		var err error
		if text, err = base64.StdEncoding.Strict().DecodeString(*inBase64); err != nil {
			return nil, wrong(name+"_base64", "must be base64 with + / and =")
		}
	}
	return text, contentTooLarge(name, len(text), most)
}

// contentTooLarge returns the failure for content of a user that is larger than the namespace takes.
func contentTooLarge(name string, bytes, most int) *failure {
	if bytes <= most {
		return nil
	}
	return fail(http.StatusRequestEntityTooLarge, "too_large", "%s has %d bytes, and the limit is %d: store it elsewhere, and send a reference", name, bytes, most).of(name)
}

func sizeOf(headers map[string]string) (size int) {
	for name, value := range headers {
		size += len(name) + len(value)
	}
	return size
}

// nameOf returns the name of a call that a body can give, or a new one.
func nameOf(call *string) (string, error) {
	if call == nil {
		return queue.NewCall(), nil
	}
	return *call, queue.CheckCall(*call)
}

// nothing changes a *failure that is nil into an error that is nil.
func nothing(f *failure) error {
	if f == nil {
		return nil
	}
	return f
}
