package queue

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// ResultTypeOf returns the [Task.ResultType] of results that are decoded as a T by encoding/json:
//
//	ResultTypeOf[bool]()        bool
//	ResultTypeOf[[]string]()    [string]?
//	ResultTypeOf[Decision]()    {approved: bool, note: string?}, for
//
//	type Decision struct {
//		Approved bool   `json:"approved"`
//		Note     string `json:"note,omitempty"`
//	}
//
// What json.Marshal writes for a T fits. So a member is required unless it is omitempty or omitzero, or
// can be null: a pointer, a slice, a map or an interface. A part with its own UnmarshalJSON, and what is
// too deep or too long for a type, is any. ResultTypeOf returns "" for a []byte, which can be any bytes.
func ResultTypeOf[T any]() string { return resultType(reflect.TypeFor[T]()) }

func resultType(t reflect.Type) string {
	if t == reflect.TypeFor[[]byte]() {
		return ""
	}
	for depth := 16; ; depth-- {
		if text := (&typeWriter{depth: depth}).write(t); len(text) <= 1024 {
			if text == "{}" { // a value without content can be left out
				text = "{}?"
			}
			return text
		}
	}
}

// typeWriter writes types in the language of Task.ResultType.
type typeWriter struct {
	depth int            // what is nested deeper is any
	open  []reflect.Type // the structs that are being written: a struct within itself is any
}

var wordOf = map[reflect.Kind]string{reflect.Bool: "bool", reflect.String: "string", reflect.Float32: "number", reflect.Float64: "number",
	reflect.Int: "int", reflect.Int8: "int8", reflect.Int16: "int16", reflect.Int32: "int32", reflect.Int64: "int",
	reflect.Uint: "uint", reflect.Uint8: "uint8", reflect.Uint16: "uint16", reflect.Uint32: "uint32", reflect.Uint64: "uint", reflect.Uintptr: "uint"}

func (w *typeWriter) write(t reflect.Type) string {
	if word := special(t); word != "" {
		return word
	}
	if word := wordOf[t.Kind()]; word != "" {
		return word
	}
	if w.depth--; w.depth < 1 || slices.Contains(w.open, t) {
		w.depth++
		return "any"
	}
	defer func() { w.depth++ }()
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(w.write(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && special(t.Elem()) == "" {
			return "string?" // base64
		}
		return "[" + w.write(t.Elem()) + "]?"
	case reflect.Array:
		return "[" + w.write(t.Elem()) + "]"
	case reflect.Map:
		return "{*: " + w.write(t.Elem()) + "}?"
	case reflect.Struct:
		w.open = append(w.open, t)
		defer func() { w.open = w.open[:len(w.open)-1] }()
		return w.object(t)
	}
	return "any"
}

func orNull(text string) string {
	if text == "any" || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "?"
}

// special returns the type of values that do not look in JSON as their kind says, or "".
func special(t reflect.Type) string {
	is := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.Number]():
		return "number"
	case t.Kind() == reflect.Pointer:
		return "" // its element is looked at
	case is(reflect.TypeFor[json.Marshaler]()), is(reflect.TypeFor[json.Unmarshaler]()):
		return "any"
	case is(reflect.TypeFor[encoding.TextUnmarshaler]()) && is(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	case is(reflect.TypeFor[encoding.TextUnmarshaler]()), is(reflect.TypeFor[encoding.TextMarshaler]()):
		return "any"
	}
	return ""
}

// member is a field of a struct in JSON.
type member struct {
	name     string
	depth    int // of embedding
	tagged   bool
	optional bool
	quoted   bool // with the option string
	of       reflect.Type
}

// object writes a struct. Of several fields with one name, the one that is embedded least deep counts, then the one with
// a tag; if there are several still, none does, as in encoding/json.
func (w *typeWriter) object(t reflect.Type) string {
	all := members(t, 0, false, nil)
	var parts []string
	for i, m := range all {
		rank := func(m member) int { return -2*m.depth + map[bool]int{true: 1}[m.tagged] }
		if slices.ContainsFunc(all, func(o member) bool { return o.name == m.name && rank(o) > rank(m) }) ||
			slices.ContainsFunc(slices.Delete(slices.Clone(all), i, i+1), func(o member) bool { return o.name == m.name && rank(o) == rank(m) }) {
			continue
		}
		name, text := m.name, w.write(m.of)
		if m.quoted {
			text = "string"
			if m.of.Kind() == reflect.Pointer {
				text = "string?"
			}
		}
		if m.optional {
			text = orNull(text)
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || strings.Trim(name[:1], "0123456789") == "" {
			name = fmt.Sprintf(`"%s"`, name) // it has no quotation mark and no backslash, which no tag can have
		}
		parts = append(parts, name+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// members returns the fields of a struct and of the structs that it embeds.
func members(t reflect.Type, depth int, optional bool, within []reflect.Type) (all []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer && inner.Name() == "" {
			inner = inner.Elem()
		}
		if tag == "-" || !f.IsExported() && !(f.Anonymous && inner.Kind() == reflect.Struct) {
			continue
		}
		if strings.ContainsFunc(name, func(r rune) bool { return !tagRune(r) }) {
			name = ""
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if !slices.Contains(within, inner) {
				all = append(all, members(inner, depth+1, optional || f.Type.Kind() == reflect.Pointer, append(slices.Clone(within), t))...)
			}
			continue
		}
		m := member{name: cmp.Or(name, f.Name), depth: depth, tagged: name != "", optional: optional, of: f.Type}
		for option := range strings.SplitSeq(options, ",") {
			switch kind := inner.Kind(); option {
			case "omitempty":
				m.optional = m.optional || f.Type.Kind() != reflect.Struct && !(f.Type.Kind() == reflect.Array && f.Type.Len() > 0)
			case "omitzero":
				m.optional = true
			case "string":
				m.quoted = kind != reflect.Struct && wordOf[kind] != ""
			}
		}
		all = append(all, m)
	}
	return all
}

// tagRune reports whether encoding/json accepts a character in a name.
func tagRune(r rune) bool {
	return strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
}
