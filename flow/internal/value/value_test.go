package value

import (
	"fmt"
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
	if _, part := o.S[0].V.(float64); !part || o.h != nil {
		t.Errorf("3.0 is a %T", o.S[0].V)
	}
	for _, bad := range []string{``, `{`, `{} {}`, `{"X":1}`, `{"M":1}`} {
		if err := Decode([]byte(bad), &o, true); err == nil {
			t.Errorf("%q is decoded", bad)
		}
	}
}
