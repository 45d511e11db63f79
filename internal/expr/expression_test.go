package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/expr/value"
)

// What could take long is refused before it is compiled, as in retry expressions.
func TestExpressionsOfFlowsAreBounded(t *testing.T) {
	for _, row := range []struct{ claim, source, want string }{
		{"an empty one", " ", "the expression is empty"},
		{"a long one", "a" + strings.Repeat(" ", maxSource), "has 4097 bytes, the limit is 4096"},
		{"?: in ?: doubles the tree", strings.Repeat("(", 100) + "a" + strings.Repeat(" ?: a)", 100), "it has more than 300 parts"},
		{"comparisons in comparisons double the tree", strings.Repeat("1 < (", 40) + "a" + strings.Repeat(") < 1", 40), "it has more than 300 parts"},
		{"many sums", "a" + strings.Repeat(" + a", 21), "it has more than 20 functions, sums and patterns"},
		{"many functions", strings.Repeat("upper(", 21) + "a" + strings.Repeat(")", 21), "it has more than 20 functions, sums and patterns"},
		{"many patterns", "a matches 'x'" + strings.Repeat(" or a matches 'x'", 20), "it has more than 20 functions, sums and patterns"},
		{"a range", "len(1..1000000000)", "at character 6: ranges are not allowed: compare with <= and >="},
		{"a loop", "all(a, # > 0)", `there is no function "all": use abs, ceil,`},
		{"a map", "{a: 1}", "maps and predicates are not allowed"},
		{"a variable", "let x = a; x", "variables of its own"},
		{"a method", "a.x()", "there are no methods: use abs"},
		{"a variable that does not exist", "b", `at character 1: there is no "b" here: use a`},
		{"a pattern of many steps", "a matches '((x{10}){10}){10}'", "its patterns are too large: use less than 250"},
		{"patterns of many steps together", "a matches '(.?){20}x'" + strings.Repeat(" or a matches '(.?){20}x'", 15), "its patterns are too large"},
		{"a long pattern", "a matches '" + strings.Repeat("[ab]", 129) + "'", "its patterns are too large"},
		{"classes of both cases", "a matches '(?i)" + strings.Repeat("[B-\U0001e900]", 10) + "'", "flags only if it is ASCII"},
		{"a class by name", `a matches "\\pL"`, `cannot contain \p`},
		{"a pattern that is computed", "a matches a", `must be a pattern in quotes, as in inputs.parameters.text matches "5[0-9][0-9]"`},
		{"a fault in a pattern", "a matches '('", "missing closing )"},
		{"a fault", "a ==", "unexpected token EOF"},
	} {
		_, err := Compile(row.source, []string{"a"})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%s: %.60s: %v, want %q in one line", row.claim, row.source, err, row.want)
		}
	}
	for _, source := range []string{"a matches '(?i)^x+$' or a matches 'é'", "count + a.map.filter + a[1:]", "[a, [a]]", "a ?? 'x' // said"} {
		if _, err := Compile(source, []string{"a", "count"}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

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
		e, err := Compile(source, variableNames(variables))
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
	e, err := Compile(source, variableNames(variables))
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

func variableNames(variables map[string]any) (all []string) {
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
