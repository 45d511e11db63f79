package value

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"
)

type inner struct {
	V  any
	At time.Time
}

type outer struct {
	M map[string]any
	P map[string]*inner
	L []any
	S []inner
	B []byte
	h any
}

func TestNumbersAreTheSameEverywhere(t *testing.T) {
	var o outer
	err := Decode([]byte(`{"M":{"a":1,"b":{"c":[9007199254740993,2.5,1e3,true,null,"x"]}},"P":{"p":{"V":7,"At":"2026-11-23T00:00:00Z"},"n":null},"L":[1,[2]],"S":[{"V":3.0}],"B":"AQI="}`), &o, true)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%#v %#v %#v %#v %v", o.M["a"], o.M["b"], o.P["p"].V, o.L, o.S[0].V)
	if want := `1 map[string]interface {}{"c":[]interface {}{9007199254740993, 2.5, 1000, true, interface {}(nil), "x"}} 7 []interface {}{1, []interface {}{2}} 3`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, whole := o.L[0].(int); !whole {
		t.Errorf("1 is a %T", o.L[0])
	}
	if _, whole := o.S[0].V.(int); !whole || o.h != nil {
		t.Errorf("3.0 is a %T", o.S[0].V)
	}
	for text, want := range map[string]string{
		"4.0": "int 4", "1e3": "int 1000", "-0": "int 0", "-0.0": "int 0", "-9223372036854775808": "int -9223372036854775808", "9223372036854775807": "int 9223372036854775807", "1e-400": "int 0",
		"0.1": "float64 0.1", "1e30": "float64 1e+30", "100000000000000000000": "float64 1e+20", "18446744073709551615": "value.Large 18446744073709551615", "-9223372036854775809": "value.Large -9223372036854775809",
		"9223372036854775808": "value.Large 9223372036854775808", "1e400": "value.Large 1e400",
	} {
		var v any
		if err := Decode([]byte("["+text+"]"), &v, true); err != nil {
			t.Fatal(err)
		}
		list := v.([]any)
		if got := fmt.Sprintf("%T %v", list[0], list[0]); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
		stored, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		if err := Decode(stored, &again, true); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%s is stored as %s, which is %v, %v", text, stored, again, err)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`, `{"X":1}`, `{"M":1}`} {
		if err := Decode([]byte(bad), &o, true); err == nil {
			t.Errorf("%q is decoded", bad)
		}
	}
}
