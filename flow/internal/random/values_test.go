package random

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/expr"
	valueof "github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// valuer makes random values, and expressions that compute with them. Most expressions are of types that fit, and some are not.
type valuer struct{ *rand.Rand }

func (g valuer) pick(all ...string) string { return all[g.IntN(len(all))] }

func (g valuer) number() string {
	return g.pick("0", "1", "7", "-3", "4.0", "-0.0", "1e3", "2.5", "12.50", "9007199254740993", "9223372036854775807", "18446744073709551615", "1e20", "100000000000000000000", "1e400", "4.611686018427388e18")
}

// json returns a value of up to so many levels. Its numbers are written in many ways.
func (g valuer) json(levels int) string {
	kind := g.IntN(8)
	if levels == 0 {
		kind = g.IntN(6)
	}
	switch kind {
	case 0, 1, 2:
		return g.number()
	case 3:
		return g.pick("true", "false", "null")
	case 4, 5:
		return g.pick(`""`, `"x"`, `"12"`, `"é<&>"`, `"\u0000"`, `"a b"`)
	case 6:
		return "[" + g.many(func(int) string { return g.json(levels - 1) }) + "]"
	}
	return "{" + g.many(func(i int) string { return fmt.Sprintf(`"%c":%s`, 'p'+i, g.json(levels-1)) }) + "}"
}

func (g valuer) many(one func(i int) string) string {
	all := make([]string, g.IntN(5))
	for i := range all {
		all[i] = one(i)
	}
	return strings.Join(all, ",")
}

// expression returns an expression that reads the variables.
func (g valuer) expression(levels int, variables ...string) string {
	inner := func() string { return g.expression(levels-1, variables...) }
	if levels == 0 {
		return g.pick(append(variables, variables[0], "2", "0.5", "'p'", "'é'", "nil")...)
	}
	switch g.IntN(12) {
	case 0, 1, 2:
		return "(" + inner() + g.pick(" + ", " - ", " * ", " / ", " / ", " % ", " ** ") + inner() + ")"
	case 3:
		return "(" + inner() + g.pick(" == ", " < ", " >= ", " in ", " ?? ", " contains ") + inner() + ")"
	case 4, 5:
		return g.pick("keys", "values", "len", "string", "int", "float", "abs", "round", "floor", "lower", "trim", "max", "min") + "(" + inner() + ")"
	case 6:
		return g.pick(variables...) + g.pick(".p", ".q", "?.p?.q", "[0]", "[1]", "['r']")
	case 7:
		return g.pick(variables...) + "[" + g.pick("0:1", "1:", ":1", ":0") + "]"
	case 8:
		return "[" + inner() + ", " + inner() + "]"
	case 9:
		return "(" + inner() + " == " + inner() + " ? " + inner() + " : " + inner() + ")"
	}
	return inner()
}

// template returns a value whose texts have expressions.
func (g valuer) template(levels int, variables ...string) any {
	kind := g.IntN(6)
	if levels == 0 {
		kind = g.IntN(4)
	}
	switch kind {
	case 0:
		return "is {{ " + g.expression(1, variables...) + " }}, {{ " + g.expression(1, variables...) + " }}."
	case 1, 2, 3:
		return "{{ " + g.expression(1+g.IntN(3), variables...) + " }}"
	case 4:
		return []any{g.template(levels-1, variables...), g.template(levels-1, variables...)}
	}
	return map[string]any{"p": g.template(levels-1, variables...), "q": g.template(levels-1, variables...), "r": 1.0}
}

// Random templates yield the same value, or the same error, each time. A value that is stored and read again is the same.
func TestRandomValuesAreAlwaysTheSame(t *testing.T) {
	seed := size.Seed()
	g := valuer{rand.New(rand.NewPCG(seed, 0))}
	rounds, values := harness.Times(1000, 1500, 5000), 0
	for i := range rounds {
		text := fmt.Sprintf(`{"a":%s,"b":%s,"c":{"p":%s,"q":%s,"r":%s}}`, g.number(), g.json(3), g.number(), g.json(1), g.json(2))
		source := g.template(1, "a", "b", "c", "c.p", "c.q")
		x, err := expr.CompileTemplate(source, []string{"a", "b", "c"})
		if err != nil {
			continue // types that cannot fit, such as of 'p' * 2
		}
		first, err := x.Value(decoded(t, text))
		for range 5 {
			again, errAgain := x.Value(decoded(t, text))
			if fmt.Sprint(err) != fmt.Sprint(errAgain) || !reflect.DeepEqual(first, again) {
				t.Fatalf("seed %d, round %d: %v of %s\nfirst %#v, %v\nthen  %#v, %v", seed, i, source, text, first, err, again, errAgain)
			}
		}
		if err != nil {
			continue
		}
		values++
		stored, err := json.Marshal(map[string]any{"v": first})
		if err != nil {
			t.Fatalf("seed %d, round %d: %v of %s yields %#v, which cannot be stored: %v", seed, i, source, text, first, err)
		}
		if read := decoded(t, string(stored))["v"]; !reflect.DeepEqual(first, read) {
			t.Fatalf("seed %d, round %d: %v of %s yields %#v, which is stored as %#v", seed, i, source, text, first, read)
		}
	}
	if values < rounds/10 {
		t.Errorf("only %d of %d templates have a value", values, rounds)
	}
	t.Logf("%d of %d templates have a value", values, rounds)
}

func decoded(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := valueof.Decode([]byte(text), &v, false); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
