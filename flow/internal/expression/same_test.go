package expression

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow/internal/value"
)

// The functions of objects return their members in one order.
func TestMembersHaveAnOrder(t *testing.T) {
	variables := decoded(t, `{"a":{"z":1,"y":2,"x":3,"w":4,"v":5},"b":{"w":{"c":[2]},"a":1.5},"e":{}}`)
	for source, want := range map[string]string{
		"keys(a)": `["v","w","x","y","z"]`, "values(a)": `[5,4,3,2,1]`, "keys(a)[0]": `"v"`, "values(b)": `[1.5,{"c":[2]}]`, "keys(e)": `[]`, "values(e)": `[]`,
		"string(a)": `"map[v:5 w:4 x:3 y:2 z:1]"`, "string(nil)": `"\u003cnil\u003e"`, "string('t')": `"t"`, "keys(values(b)[1])": `["c"]`,
		"keys(1)": "keys needs an object", "values([a])": "values needs an object", "keys(nil)": "keys needs an object",
	} {
		for range 20 {
			if got := outcome(t, source, variables); !strings.Contains(got, want) {
				t.Fatalf("%s is %s, want %s", source, got, want)
			}
		}
	}
	for _, source := range []string{"keys()", "keys(a, b)", "string()"} {
		if _, err := Compile(source, []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "argument") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// Of several errors in an object, the first in the order of the names counts.
func TestTheFirstErrorIsAlwaysTheSame(t *testing.T) {
	object := map[string]any{"z": "{{ a.x }}", "b": "{{ int('b') }}", "c": "{{ int('c') }}", "d": []any{"{{ int('d') }}"}}
	x, err := CompileTemplate(object, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := x.Value(map[string]any{"a": 1}); err == nil || !strings.Contains(err.Error(), `int('b')`) {
			t.Fatalf("the error is %v", err)
		}
		_, err := CompileTemplate(map[string]any{"b": "{{ q }}", "a": "{{ p }}", "c": "{{ r }}"}, []string{"a"})
		if err == nil || strings.Index(err.Error(), `"p"`) > strings.Index(err.Error(), `"q"`) || strings.Index(err.Error(), `"q"`) > strings.Index(err.Error(), `"r"`) {
			t.Fatalf("the errors are %v", err)
		}
	}
}

// A number that is computed is the number that a checkpoint keeps.
func TestComputedNumbersAreThoseOfACheckpoint(t *testing.T) {
	variables := decoded(t, `{"i":4,"f":4.0,"e":1e3,"half":2.5,"many":18446744073709551615,"huge":1e400,"id":123456789012345678901234567890,"s":"é","list":[1,2.0,{"x":3e0}]}`)
	for source, want := range map[string]string{
		"i / 2": "int 2", "f": "int 4", "e": "int 1000", "half": "float64 2.5", "half * 2": "int 5", "0.5 + 0.25": "float64 0.75", "2 ** 70": "float64 1.1805916207174113e+21", "2 ** 62": "int 4611686018427387904",
		"2.0 ** 63": "float64 9.223372036854776e+18", "-(2.0 ** 63)": "int -9223372036854775808", "-0.0": "int 0", "round(2.4)": "int 2", "[i / 2, half]": "[]interface {} [2 2.5]",
		"1e20": "float64 1e+20", "1 / 0": "infinite or undefined", "[0 / 0]": "infinite or undefined", "10.0 ** 400": "infinite or undefined",
		"many": "value.Large 18446744073709551615", "huge": "value.Large 1e400", "id": "value.Large 123456789012345678901234567890", "string(many)": "string 18446744073709551615",
		"many == many": "bool true", "many == id": "bool false", "many > 5": "a number of more than 64 bits > int", "many + 1": "a number of more than 64 bits + int", "int(many)": "a number of more than 64 bits",
		"len(many)": "a number of more than 64 bits", "many[0:1]": "cannot slice", "max(many, 1)": "a number of more than 64 bits",
		"s[0:1]": "string \uFFFD", "s[1]": "int 169", "len(s)": "int 1", "list[1] % 2": "int 0", "list[2].x % 2": "int 1",
	} {
		e, err := Compile(source, names(variables))
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Value(variables)
		if err != nil {
			v = err
		}
		if got := fmt.Sprintf("%T %v", v, v); !strings.Contains(got, want) && got != want {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
}

// What a value takes is bounded, whatever is in it twice.
func TestTheSizeOfAValueIsBounded(t *testing.T) {
	double, err := CompileTemplate(map[string]any{"v": []any{"{{ a }}", "{{ a }}"}}, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	var v any = strings.Repeat("x", 1000)
	levels := 0
	for ; err == nil; levels++ {
		var next any
		if next, err = double.Value(map[string]any{"a": v}); err == nil {
			v = next.(map[string]any)["v"]
		}
	}
	if levels != 13 || !strings.Contains(err.Error(), "more than 4194304 bytes") { // 1000 × 2^12 is less than 4 MiB
		t.Errorf("after %d levels: %v", levels, err)
	}
	variables := map[string]any{"a": strings.Repeat("x", 1600<<10)}
	for source, fits := range map[string]bool{"a": true, "[a, a]": true, "[a, a, a]": false, "a + a + a": false, "string([a, a])": true, "string([a, a, a])": false, "len(string([a, a, a]))": false, "len(a + a + a)": true} {
		e, err := Compile(source, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Value(variables); (err == nil) != fits {
			t.Errorf("%s: %v", source, err)
		}
	}
	for text, fits := range map[string]bool{"{{ a }}-{{ a }}": true, "{{ a }}{{ a }}-{{ a }}": false, "{{ a }}{{ a }}" + strings.Repeat("y", 1200<<10): false} {
		x, err := CompileTemplate([]any{text}, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Value(variables); (err == nil) != fits {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	deep, err := CompileTemplate([]any{"{{ a }}"}, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	v, levels = any("x"), 0
	for ; err == nil && levels < 2000; levels++ {
		v, err = deep.Value(map[string]any{"a": v})
	}
	if err == nil || levels > 1002 {
		t.Errorf("a value has %d levels", levels)
	}
}

func outcome(t *testing.T, source string, variables map[string]any) string {
	t.Helper()
	e, err := Compile(source, names(variables))
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Value(variables)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func names(variables map[string]any) (all []string) {
	for name := range variables {
		all = append(all, name)
	}
	return all
}

func decoded(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := value.Decode([]byte(text), &v, false); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
