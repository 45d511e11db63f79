package jsonx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// Encode returns the JSON of a value. It differs from encoding/json in these types: an instant is in ms since
// 1970, a span in ms, and a text or bytes that are not UTF-8 are in base64 under name_base64. Fields without a
// json tag are left out, and so are empty fields whose tag has omitempty or omitzero.
func Encode(value any) []byte {
	var o Object
	o.value(reflect.ValueOf(value))
	return o.b.Bytes()
}

// member writes a member of any type.
func (o *Object) member(name string, v reflect.Value) {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	_, encodes := v.Interface().(json.Marshaler)
	switch {
	case v.Kind() == reflect.String && !encodes:
		o.Word(name, v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		o.Word(name, string(v.Bytes()))
	case o.Name(name):
		o.value(v)
	}
}

// value writes a value that has no name, or whose name is written.
func (o *Object) value(v reflect.Value) {
	switch value := v.Interface().(type) {
	case time.Time:
		fmt.Fprint(&o.b, value.UnixMilli())
	case time.Duration:
		fmt.Fprint(&o.b, value.Milliseconds())
	case duration.Duration:
		fmt.Fprint(&o.b, time.Duration(value).Milliseconds())
	case json.Marshaler:
		text, err := value.MarshalJSON()
		if err != nil {
			panic(err) // what Curfew prints can always be encoded
		}
		o.b.Write(text)
	default:
		o.plain(v)
	}
}

// plain writes a value by its kind.
func (o *Object) plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			o.b.WriteString("null")
			return
		}
		o.value(v.Elem())
	case reflect.Struct:
		var inner Object
		inner.structure(v)
		o.b.Write(inner.Close())
	case reflect.Map:
		var inner Object
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			inner.member(key.String(), v.MapIndex(key))
		}
		o.b.Write(inner.Close())
	case reflect.Slice, reflect.Array:
		o.b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				o.b.WriteByte(',')
			}
			o.value(v.Index(i))
		}
		o.b.WriteByte(']')
	case reflect.String:
		o.text(v.String())
	default: // a number or a flag
		fmt.Fprint(&o.b, v.Interface())
	}
}

// structure writes the fields that have a tag. Those of an embedded struct are written as its own.
func (o *Object) structure(v reflect.Value) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case v.Type().Field(i).Anonymous:
			o.structure(v.Field(i))
		case tag == "" || tag == "-" || options != "" && isEmpty(v.Field(i)):
		default:
			o.member(name, v.Field(i))
		}
	}
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
