// Package value gives each value one form, wherever it comes from: a definition, the input of a run, the result of a task, an
// expression, or the state of a checkpoint. A whole number is an int, and any other one a float64. A number that neither can hold is a
// Large. So an expression computes the same before and after a checkpoint.
package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
)

// Decode decodes one JSON value into what v points to. strict refuses members that v does not have.
func Decode(text []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the value")
	}
	plain(reflect.ValueOf(v))
	return nil
}

// Number returns a number of JSON as expressions read it.
func Number(n json.Number) any {
	text := n.String()
	if i, err := n.Int64(); err == nil {
		return int(i)
	}
	f, err := n.Float64()
	if err != nil {
		return Large{text} // beyond any float64
	}
	if !strings.ContainsAny(text, ".eE") && string(floatJSON(f)) != text {
		return Large{text} // a float64 would be another number
	}
	return whole(f)
}

// Large is a whole number that has more than 64 bits, or a number that is too large for a float64. It is kept as it was written.
// No expression can compute with it.
type Large struct{ text string }

// String returns the number as it was written.
func (l Large) String() string { return l.text }

// MarshalJSON returns the number as it was written.
func (l Large) MarshalJSON() ([]byte, error) { return []byte(l.text), nil }

// whole returns a float64 as an int if it is a whole number that an int can hold.
func whole(f float64) any {
	if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
		return int(f)
	}
	return f
}

// floatJSON returns a number as JSON has it.
func floatJSON(f float64) []byte {
	text, _ := json.Marshal(f) // it is finite
	return text
}

var number = reflect.TypeFor[json.Number]()

// plain replaces each json.Number below a value.
func plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			plain(v.Elem())
		}
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if inner := v.Elem(); inner.Type() == number {
			v.Set(reflect.ValueOf(Number(inner.Interface().(json.Number))))
		} else {
			plain(inner)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plain(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			plain(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			member := v.MapIndex(key)
			if member.Kind() == reflect.Interface && !member.IsNil() && member.Elem().Type() == number {
				v.SetMapIndex(key, reflect.ValueOf(Number(member.Elem().Interface().(json.Number))))
			} else {
				plain(member)
			}
		}
	}
}
