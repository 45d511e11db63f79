package jsonx

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/vocabulary"
)

// MaxExact is 2^53: a double holds all whole numbers up to it exactly. Most programs read the
// numbers of JSON as doubles.
const MaxExact = 1 << 53

// Object writes a JSON object member by member, in the order of the calls. encoding/json would
// sort the members, and replace bytes that are not UTF-8.
type Object struct {
	b     bytes.Buffer
	names []string
}

// Name begins a member. If there is already a member of this name, it writes nothing and returns
// false.
func (o *Object) Name(name string) bool {
	if slices.Contains(o.names, name) {
		return false
	}
	if o.names == nil {
		o.b.WriteByte('{')
	} else {
		o.b.WriteByte(',')
	}
	o.names = append(o.names, name)
	o.text(name)
	o.b.WriteByte(':')
	return true
}

func (o *Object) text(s string) {
	if isPlain(s) {
		o.b.WriteByte('"')
		o.b.WriteString(s)
		o.b.WriteByte('"')
		return
	}
	encoder := json.NewEncoder(&o.b)
	encoder.SetEscapeHTML(false)
	encoder.Encode(s)
	o.b.Truncate(o.b.Len() - 1) // its newline
}

// isPlain reports whether a text needs no escapes in JSON. Most texts need none, and an encoder
// takes much longer.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Word writes a text. If the text is not UTF-8, Word writes it in base64 under name_base64.
func (o *Object) Word(name, value string) {
	if !utf8.ValidString(value) {
		name, value = name+"_base64", base64.StdEncoding.EncodeToString([]byte(value))
	}
	if o.Name(name) {
		o.text(value)
	}
}

// Number writes a whole number.
func (o *Object) Number(name string, n int64) {
	if o.Name(name) {
		o.b.WriteString(strconv.FormatInt(n, 10))
	}
}

// Float writes a score; a whole number has no decimal point. Infinity and NaN are written as
// texts, since JSON does not have them as numbers.
func (o *Object) Float(name string, f float64) {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		o.Word(name, strconv.FormatFloat(f, 'g', -1, 64))
	case o.Name(name):
		o.b.WriteString(strconv.FormatFloat(f, 'f', -1, 64))
	}
}

// Flag writes true or false.
func (o *Object) Flag(name string, b bool) {
	if o.Name(name) {
		o.b.WriteString(strconv.FormatBool(b))
	}
}

// Field writes a stored field. If values of this name are numbers, it writes a number, or null if the
// value is empty. Otherwise, or if the value is not a number, it writes a text.
func (o *Object) Field(name, value string) {
	if !utf8.ValidString(name) {
		name = "base64:" + base64.StdEncoding.EncodeToString([]byte(name))
	}
	t, _ := vocabulary.Of(name)
	switch numeric := t == vocabulary.Number || t == vocabulary.Instant || t == vocabulary.Span; {
	case numeric && value == "":
		if o.Name(name) {
			o.b.WriteString("null")
		}
	case numeric && isNumber(value):
		if o.Name(name) {
			o.b.WriteString(value)
		}
	default:
		o.Word(name, value)
	}
}

// Fields writes stored fields sorted by name, so that equal fields give equal texts. The field node of a task, which has
// three words, becomes three members: definition, version and node. The version of a definition is a text, also if
// it has digits only.
func (o *Object) Fields(fields map[string]string) {
	if words := strings.Split(fields["node"], " "); len(words) == 3 {
		fields = maps.Clone(fields)
		fields["definition"], fields["version"], fields["node"] = words[0], words[1], words[2]
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "version" && fields["definition"] != "" {
			o.Word(name, fields[name])
			continue
		}
		o.Field(name, fields[name])
	}
}

// Object writes a member that is an object of stored fields.
func (o *Object) Object(name string, fields map[string]string) {
	var inner Object
	inner.Fields(fields)
	o.Raw(name, inner.Close())
}

// Raw writes a member whose value is JSON.
func (o *Object) Raw(name string, value []byte) {
	if o.Name(name) {
		o.b.Write(value)
	}
}

// Value writes a value of any type, as Encode does.
func (o *Object) Value(name string, value any) { o.member(name, reflect.ValueOf(value)) }

// Close ends the object and returns its text.
func (o *Object) Close() []byte {
	if o.names == nil {
		o.b.WriteByte('{')
	}
	o.b.WriteByte('}')
	return o.b.Bytes()
}

// isNumber reports whether a text is a number in the form of JSON that a double holds.
func isNumber(s string) bool {
	whole, fraction, pointed := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	n, ok := Decimal(whole)
	digits := strings.Trim(fraction, "0123456789") == "" && fraction != "" && len(fraction) < 17
	return ok && n <= MaxExact && (!pointed || digits)
}

// Decimal parses a whole number in decimal. It accepts no sign and no leading zeros, so each number
// has only one text.
func Decimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && (s == "0" || s[0] >= '1' && s[0] <= '9')
}
