// Package value decodes JSON so that a number is the same wherever it comes from: a definition, the input of a run, the result of a
// task, or the state of a checkpoint. A whole number is an int, and any other one is a float64.
package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// Number returns a number as expressions read it.
func Number(n json.Number) any {
	if !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return int(i)
		}
	}
	f, err := n.Float64()
	if err != nil {
		return n.String() // larger than any number
	}
	return f
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
