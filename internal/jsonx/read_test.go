package jsonx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/refusal"
)

func TestAFaultHasItsPosition(t *testing.T) {
	for _, row := range []struct{ claim, text, want string }{
		{"in a text of one line", `{"a":1,}`, "byte 8: JSON is not valid: invalid character '}' looking for beginning of object key string"},
		{"in another line", "{\n\"a\": 1,\n}", "line 3, byte 1: JSON is not valid: invalid character '}' looking for beginning of object key string"},
		{"behind the value", "{}\n{}", "line 2, byte 1: JSON is not valid: invalid character '{' after top-level value"},
		{"at the end", "[\n", "byte 2: JSON is not valid: unexpected end of JSON input"},
		{"a byte that is not UTF-8", "[\n\n  \"\xff\"]", "line 3, byte 4: JSON must be UTF-8"},
		{"a level too many", strings.Repeat("[\n", 1000) + strings.Repeat("]", 1000), "line 1000, byte 1: JSON is nested too deep: a payload may have 998 levels"},
		{"more levels than encoding/json reads", strings.Repeat("[", 20000), "byte 10001: JSON is nested too deep: a payload may have 998 levels"},
		{"no text", "\n ", "byte 1: JSON is missing"},
	} {
		_, err := jsonx.Parse([]byte(row.text))
		var fault *jsonx.Error
		if !errors.As(err, &fault) || !errors.Is(err, refusal.ErrInvalid) || err.Error() != row.want {
			t.Errorf("%s: Parse(%.40q): %v, want %s", row.claim, row.text, err, row.want)
		}
	}
	const task = "{\n  \"kind\": \"k\",\n  \"timeout\": \"30\"\n}"
	if _, err := jsonx.ReadTask([]byte(task), 1<<20); err == nil || !strings.HasPrefix(err.Error(), `line 3, byte 14: timeout "30" has no unit`) {
		t.Errorf("ReadTask(%q): %v", task, err)
	}
}

func TestMembersKeepTheirOrder(t *testing.T) {
	v, err := jsonx.Parse([]byte(` { "a" : [ 1 , "]" ] , "\u0062" :-2e1,"a":null,"":{"}":"\"{"} } `))
	if err != nil || !v.IsObject() || v.IsList() {
		t.Fatal(v, err)
	}
	var got []string
	for m := range v.Members() {
		got = append(got, fmt.Sprintf("%s %v %s %d", m.Name, m.Twice, m.Text(), m.At()))
	}
	want := []string{`a false [ 1 , "]" ] 9`, `b false -2e1 33`, `a true null 42`, ` false {"}":"\"{"} 50`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the members are\n%q, want\n%q", got, want)
	}
}

// whole returns a value as encoding/json decodes it, with numbers as they are written.
func whole(v jsonx.Value) any {
	switch {
	case v.IsObject():
		object := map[string]any{}
		for m := range v.Members() {
			if _, twice := object[m.Name]; twice != m.Twice {
				return fmt.Sprintf("%q is given twice: %v, want %v", m.Name, m.Twice, twice)
			}
			object[m.Name] = whole(m.Value)
		}
		return object
	case v.IsList():
		list := []any{}
		for item := range v.Elements() {
			list = append(list, whole(item))
		}
		return list
	}
	return v.Scalar()
}

// Parse takes what encoding/json takes, if it is UTF-8 and not too deep. Member by member, the values are the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, ` [ ] `, `1`, ` "a" `, `[1,2 ,"\"]",{"a":[]},-0.5e3,true,false,null]`, `{"a":{"a":1,"a":2},"\u0061":3}`, "[\n{\"b\"\t: \"\\\\\"\r}]", `"\ud800"`, `{"a"`, `[1,]`, "\"\xff\""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := jsonx.Parse(text)
		if valid := json.Valid(text) && utf8.Valid(text); err != nil {
			var fault *jsonx.Error
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Byte < 1 || fault.Byte > len(text)+1 {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			if valid && !strings.Contains(err.Error(), "nested too deep") {
				t.Fatalf("Parse(%q): %v, and json takes it", text, err)
			}
			return
		} else if !valid {
			t.Fatalf("Parse takes %q, and json does not", text)
		}
		var want any
		if err := v.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := whole(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %v, want %v", text, got, want)
		}
	})
}

func BenchmarkReadTask(b *testing.B) {
	for name, payload := range map[string]string{"small": `{"to":"a@example.org","n":17,"tags":["a","b"]}`, "15KB": `"` + strings.Repeat(`x\n`, 5000) + `"`} {
		text := []byte(`{"kind":"email","payload":` + payload + `,"timeout":"30s","max_retries":3}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonx.ReadTask(text, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
