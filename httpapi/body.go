package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// task stands for a task in the type of a body.
type task struct{ jsonx.Value }

// read reads a task. name is its place in the body, "" for the body itself.
func (t task) read(name string, maxBytes int) (queue.Task, *failure) {
	read, err := t.Task(math.MaxInt)
	f := contentTooLarge("payload", len(read.Payload), maxBytes)
	if f == nil {
		f = contentTooLarge("headers", sizeOf(read.Headers), maxBytes)
	}
	if err != nil {
		f = failureOf(err)
	}
	if name != "" {
		f = within(f, name)
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
	v, err := jsonx.Parse(text)
	switch {
	case err != nil:
		return fail(http.StatusBadRequest, "invalid", "the body is not valid: %v", err).of("body")
	case !v.IsObject():
		return fail(http.StatusBadRequest, "invalid", `the body must be a JSON object, such as {"name":"value"}`).of("body")
	}
	return readMembers(reflect.ValueOf(into).Elem(), v)
}

// readMembers reads the members of an object into the fields of a struct.
func readMembers(into reflect.Value, object jsonx.Value) *failure {
	fields, order := fieldsOf(into)
	present := map[string]bool{}
	for m := range object.Members() {
		field, exists := fields[m.Name]
		switch {
		case !exists:
			return failureOf(jsonx.Unknown(m.Name, order))
		case m.Twice:
			return wrong(m.Name, "is given twice")
		}
		present[m.Name] = true
		if f := setMember(field, m); f != nil {
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

func setMember(field bodyField, m jsonx.Member) *failure {
	_, any := field.value.Interface().(json.RawMessage)
	if any || !m.IsNull() {
		return setValue(field.value, m.Name, m.Value)
	}
	if field.needed {
		return wrong(m.Name, "must not be null")
	}
	return nil
}

// setValue reads a value of any type. name is its place in the object.
func setValue(into reflect.Value, name string, v jsonx.Value) *failure {
	t := into.Type()
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		into.SetBytes(v.Text())
	case t == reflect.TypeFor[task]():
		into.Set(reflect.ValueOf(task{v}))
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		into.Set(reflect.New(t.Elem()))
		return setValue(into.Elem(), name, v)
	case t.Kind() == reflect.Struct:
		if !v.IsObject() {
			return wrong(name, "must be an object")
		}
		return within(readMembers(into, v), name)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return setList(into, name, v)
	default:
		if err := json.Unmarshal(v.Text(), into.Addr().Interface()); err != nil {
			return wrong(name, "must be %s", typeInWords(t))
		}
	}
	return nil
}

// setList reads a list of objects.
func setList(into reflect.Value, name string, list jsonx.Value) *failure {
	if !list.IsList() {
		return wrong(name, "must be a list of objects")
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	for v := range list.Elements() {
		i := into.Len()
		into.Set(reflect.Append(into, reflect.Zero(into.Type().Elem())))
		if f := setValue(into.Index(i), name+"["+strconv.Itoa(i)+"]", v); f != nil {
			return f
		}
	}
	return nil
}

// within adds the name of the enclosing object to a failure of one of its members.
func within(f *failure, name string) *failure {
	if f == nil {
		return nil
	}
	field := name
	if f.Problem.Error.Field != "" {
		field += "." + f.Problem.Error.Field
	}
	f.Problem.Error.Sentence = name + ": " + f.Problem.Error.Sentence
	return f.of(field)
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
