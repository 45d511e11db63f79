package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

type (
	inner struct {
		A bool
		B *int8 `json:"b"`
	}
	Outer struct {
		A string `json:"a,omitempty"`
		C uint16 `json:"the c"`
	}
	embedding struct {
		inner
		*Outer
		D []inner        `json:"d"`
		E map[string]int `json:"é,omitempty"`
		F time.Time      `json:"f,omitzero"`
	}
	list struct {
		Next  *list
		Value float64
	}
	hiding struct {
		Outer
		A int
		X struct{ A bool } `json:"-"`
		Y any              `json:"y"`
	}
	odd struct {
		A int64    `json:",string"`
		B [2]uint8 `json:",omitempty"`
		C [0]uint8 `json:",omitempty"`
		D []byte
		E map[netip.Addr]int
		F struct{} `json:",omitempty"`
		G any
	}
	clash struct { // both fields k are as deep, so neither counts
		inner
		Clash
		K bool
	}
	Clash struct {
		A int
		L string `json:"k"`
	}
	wide struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P struct{ Aaaaaaaaaaaa, Bbbbbbbbbbb, Cccccccccccccc, Dddddddddddd int }
	}
)

var goTypes = []struct {
	of   any
	want string
}{
	{true, "bool"}, {"", "string"}, {0, "int"}, {int8(0), "int8"}, {int64(0), "int"}, {uint(0), "uint"}, {uint32(0), "uint32"}, {float32(0), "number"},
	{[]byte(nil), ""}, {json.RawMessage(nil), "any"}, {new(any), "any"}, {time.Time{}, "time"}, {new(time.Time), "time?"}, {time.Second, "int"},
	{json.Number(""), "number"}, {big.Int{}, "any"}, {netip.Addr{}, "string"}, {[]string(nil), "[string]?"}, {[3]*int(nil2()), "[int?]"},
	{map[string]bool(nil), "{*: bool}?"}, {map[int]any(nil), "{*: any}?"}, {struct{}{}, "{}?"}, {new(bool), "bool?"}, {new(*bool), "bool?"},
	{inner{}, "{A: bool, b: int8?}"},
	{embedding{}, `{A: bool, b: int8?, a: string?, "the c": uint16?, d: [{A: bool, b: int8?}]?, "é": {*: int}?, f: time?}`},
	{list{}, "{Next: any, Value: number}"}, {hiding{}, `{a: string?, "the c": uint16, A: int, y: any}`},
	{odd{}, "{A: string, B: [uint8], C: [uint8]?, D: string?, E: {*: int}?, F: {}, G: any}"},
	{clash{}, "{b: int8?, k: string, K: bool}"},
	{wide{}, "{A: any, B: any, C: any, D: any, E: any, F: any, G: any, H: any, I: any, J: any, K: any, L: any, M: any, N: any, O: any, P: any}"},
	{[][][][][][][][][][][][][][][][][]int(nil), strings.Repeat("[", 15) + "any" + strings.Repeat("]?", 15)},
	{make(chan int), "any"},
}

func nil2() [3]*int { return [3]*int{} }

func TestResultTypesOfGoTypes(t *testing.T) {
	for _, c := range goTypes {
		of := reflect.TypeOf(c.of)
		if _, any := c.of.(*any); any {
			of = of.Elem()
		}
		if got := queue.ResultType(of); got != c.want {
			t.Errorf("%v: %s, want %s", of, got, c.want)
		}
	}
}

// promises settles promises of types: it makes another one when one has been settled.
type promises struct {
	t  *testing.T
	q  *queue.Queue
	id map[string]string
}

// fault returns why a value is refused by a type, or "". A refused value changes nothing.
func (p *promises) fault(of, value string) string {
	p.t.Helper()
	if p.id[of] == "" {
		p.id[of] = queuetest.Enqueue(p.t, p.q, queue.Task{Kind: "p", Promise: true, ResultType: of}).ID
	}
	r, err := p.q.Resolve(context.Background(), p.id[of], []byte(value))
	switch {
	case err == nil && r.Done:
		delete(p.id, of)
		return ""
	case !errors.Is(err, refusal.ErrInvalid):
		p.t.Fatalf("Resolve of %s with %q = %+v, %v", of, value, r, err)
	}
	_, fault, _ := strings.Cut(err.Error(), "must be JSON of type "+of)
	_, fault, _ = strings.Cut(fault, ": ")
	return fault
}

func TestResultsOfTypes(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		p := &promises{t, q, map[string]string{}}
		for _, c := range []struct{ of, value, fault string }{
			{"bool", "true", ""}, {"bool", " \n\tfalse\r\n ", ""}, {"bool", `"yes"`, "it is a string"}, {"bool", "yes", "it is not JSON, see byte 1"},
			{"bool", "null", "it is null"}, {"bool", "", "it is empty"}, {"bool", "1", "it is a number"}, {"bool", "True", "it is not JSON, see byte 1"},
			{"bool", "truefalse", "it is not JSON, see byte 5"}, {"bool", "true\x00", "it is not UTF-8 text"}, {"bool", "tru", "it is not JSON, see byte 1"},
			{"bool?", "null", ""}, {"bool?", "", ""}, {"bool ?", "", "refused"}, {" bool ", "true", ""},
			{"any", "[1,{}]", ""}, {"any", "", ""}, {"any", "{", "it ends within a value"}, {"any", "\xff", "it is not UTF-8 text"}, {"any", `"\xff"`, "it is not JSON, see byte 2"},
			{"any", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), ""}, {"any", strings.Repeat("[", 9000), "nested deeper than 1000"},
			{"any", "NaN", "it is not JSON, see byte 1"}, {"any", "0x1F", "it is not JSON, see byte 2"}, {"any", "01", "it is not JSON, see byte 1"}, {"any", "-", "it is not JSON, see byte 1"},
			{"any", "1.", "it is not JSON, see byte 2"}, {"any", "1e", "it is not JSON, see byte 2"}, {"any", "-0.5e+7", ""}, {"any", "+1", "it is not JSON, see byte 1"},
			{"int", "9223372036854775807", ""}, {"int", "9223372036854775808", "it is out of range"}, {"int", "-9223372036854775808", ""}, {"int", "-9223372036854775809", "it is out of range"},
			{"int", "1.0", "it is not written as a whole number"}, {"int", "1e3", "it is not written as a whole number"}, {"int8", "300", "it is out of range"}, {"int8", "-128", ""},
			{"uint", "18446744073709551615", ""}, {"uint", "18446744073709551616", "it is out of range"}, {"uint", "-0", "it is out of range"}, {"uint8", "256", "it is out of range"},
			{"number", "1.5", ""}, {"number", "1e400", "it is out of range"}, {"number", "-0.001e312", "it is out of range"}, {"number", "0e999999999", ""}, {"number", "1e-999999999", ""}, {"number", "1" + strings.Repeat("0", 309), "it is out of range"},
			{"number", "1.7976931348623157e+0308", ""}, {"number", "0.00001e+313", ""}, {"number", "1.8e308", "it is out of range"}, {"number", "-17976931348623158.08e292", "it is out of range"}, {"number", "1.797693134862315807e308", ""}, {"number", "9e307", ""}, {"number", `"1"`, "it is a string"},
			{"string", `"\ud800 é ` + "\x7f" + `"`, ""}, {"string", `"` + "\n" + `"`, "it is not JSON, see byte 2"}, {"string", `"\x"`, "it is not JSON, see byte 2"}, {"string", `"`, "it ends within a value"},
			{"string", "\"\xff\"", "it is not UTF-8 text"},
			{"time", `"2024-02-29T23:59:59.123456789Z"`, ""}, {"time", `"2026-02-29T23:59:59Z"`, "it is not a time"}, {"time", `"2026-11-26T20:00:00+01:00"`, ""},
			{"time", `"tomorrow"`, "it is not a time"}, {"time", `"2026-11-26"`, "it is not a time"}, {"time", `"2026-11-26T24:00:00Z"`, "it is not a time"}, {"time?", "null", ""},
			{"[string]", `["a",1]`, "[1] is a number"}, {"[string]", "[]", ""}, {"[string]", "{}", "it is an object"}, {"[string]", "[,]", "[0] is not JSON, see byte 2"}, {"[string]", `["a",]`, "[1] is not JSON, see byte 6"},
			{"[[int]]", "[[1],[2,null]]", "[1][1] is null"}, {"[string]", `["a" "b"]`, "it is not JSON, see byte 5"},
			{"{}", "[]", "it is an array"}, {"{}", `{"a":1}`, ""}, {"{*: int}", `{"a":1,"b":"2"}`, "b is a string"}, {"{*: int}", `{"a b\n":"2"}`, "a member is a string"},
			{"{a: bool, b: [{c: int?}]}", `{"b":[{"c":"x"}],"a":true}`, "b[0].c is a string"}, {"{a: bool}", `{"a":true,"a":1}`, "a is a number"}, {"{a: bool}", `{"a":true,}`, "it is not JSON, see byte 11"},
			{"{a: bool}", `{"\u0061":1}`, "a is a number"}, {"{a: bool}", `{"A":true}`, ""}, {"{a: bool, A: int}", `{"A":1,"a":true}`, ""}, {"{k: bool}", "{\"\u212a\":1}", "a member is a number"},
			{"{a: any, b: int?}", "{}", ""}, {"{a: bool}", `{a:true}`, "it is not JSON, see byte 2"}, {"{a: bool}", `{"a" true}`, "it is not JSON, see byte 2"},
			{`{"é \t": bool}`, "", "refused"}, {`{"é": bool}`, "{}", "a member is missing"}, {"{*: int, a: bool}", "", "refused"}, {"", "\xff", ""}, {"bool bool", "", "refused"}, {"[]", "", "refused"},
			{"{a: bool, a: bool}", "", "refused"}, {"bool\nx=y", "", "refused"}, {"int16?", "-32769", "it is out of range"}, {"boolean", "", "refused"}, {"Bool", "", "refused"}, {"bool??", "", "refused"},
			{"[int]", "[" + strings.Repeat("1,", 40000) + `"x"]`, ""}, {"[int]", "[" + strings.Repeat("1,", 20000) + `"x"]`, ""}, {"[int]", "[" + strings.Repeat("1,", 9000) + `"x"]`, "[9000] is a string"},
			{"bool", `"` + strings.Repeat("x", 65536) + `"`, "it is a string"}, {"bool", strings.Repeat(" ", 65536) + "x", "it is not JSON"}, {"string", `"` + strings.Repeat("x", 65536), ""},
		} {
			if c.fault == "refused" {
				if _, err := q.Enqueue(context.Background(), queue.Task{Kind: "p", Promise: true, ResultType: c.of}); !errors.Is(err, refusal.ErrInvalid) {
					t.Errorf("the type %q = %v, want ErrInvalid", c.of, err)
				}
				continue
			}
			if got := p.fault(c.of, c.value); (got == "") != (c.fault == "") || !strings.HasPrefix(got, c.fault) && !strings.Contains(got, c.fault) {
				t.Errorf("%s of %.60q: %q, want %q", c.of, c.value, got, c.fault)
			}
		}
	})
}

// A check takes a few milliseconds at most, because Redis does nothing else meanwhile. What comes after that is not looked at.
func TestTheCheckOfAResultIsBounded(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		p := &promises{t, q, map[string]string{}}
		members := strings.TrimSuffix(strings.Repeat("%s:int?,", 100), ",")
		var names []any
		for i := range 100 {
			names = append(names, fmt.Sprintf("m%d", i))
		}
		many, now := "[{"+fmt.Sprintf(members, names...)+"}]", `"2026-11-26T20:00:00Z",`
		for _, c := range []struct{ claim, of, value, fault string }{
			{"few objects", many, "[" + strings.Repeat("{},", 90) + `"x"]`, "[90] is a string"},
			{"many members that can be absent", many, "[" + strings.Repeat("{},", 100) + `"x"]`, ""},
			{"few escapes", "[string]", `["` + strings.Repeat(`\n`, 9900) + `",1]`, "[1] is a number"},
			{"many escapes", "[string]", `["` + strings.Repeat(`\n`, 10000) + `",1]`, ""},
			{"many escapes in a name", "[{}]", `[{"` + strings.Repeat(`\n`, 10000) + `":1},1]`, ""},
			{"few names", "[{}]", "[{" + strings.Repeat(`"":1,`, 4900) + `"":1},1]`, "[1] is a number"},
			{"many names", "[{}]", "[{" + strings.Repeat(`"":1,`, 5000) + `"":1},1]`, ""},
			{"few times", "[any]", "[" + strings.Repeat(now, 2500) + "x]", "[2500] is not JSON, see byte 57502"},
			{"few times of the type", "{a:[time],b:[int]}", `{"a":[` + strings.Repeat(now, 2499) + now[:22] + `],"b":[` + strings.Repeat("1,", 2400) + `"x"]}`, "b[2400] is a string"},
			{"many times", "{a:[time],b:[int]}", `{"a":[` + strings.Repeat(now, 2499) + now[:22] + `],"b":[` + strings.Repeat("1,", 2500) + `"x"]}`, ""},
		} {
			if got := p.fault(c.of, c.value); got != c.fault {
				t.Errorf("%s: %q, want %q", c.claim, got, c.fault)
			}
		}

		// So many types are not read.
		w := &queuetest.Taker{Q: q, Worker: "w1"}
		var outcomes []queue.Outcome
		settle := func() []queue.Verdict {
			reply, err := claim.Of(q).Settle(t.Context(), 0, "w1", queue.NewCall(), outcomes, claim.Ask{})
			if err != nil {
				t.Fatal(err)
			}
			return reply.Verdicts
		}
		for i := range 50 {
			of := fmt.Sprintf("{m%d:string%s}", i, strings.Repeat(" ", 1000))
			id := queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprintf("0-u%d", i), Kind: "k", ResultType: of}).ID
			outcomes = append(outcomes, queue.Outcome{ID: id, Epoch: w.Take(t, id, "default").Epoch, Verb: queue.Complete, Result: []byte("1")})
		}
		if all := settle(); all[0].Accepted() || all[35].Accepted() || !all[40].Accepted() || !all[49].Accepted() {
			t.Errorf("50 types of 1 KB: %v", all)
		}

		// All outcomes of one call share the bound of bytes. The first character is looked at of each.
		outcomes = nil
		invalid := `["` + strings.Repeat("x", 40000) + `",1]`
		for i, result := range []string{invalid, invalid, invalid, "1", `["x"]`, "[1]"} {
			id := queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprintf("0-t%d", i), Kind: "k", ResultType: "[string]"}).ID
			outcomes = append(outcomes, queue.Outcome{ID: id, Epoch: w.Take(t, id, "default").Epoch, Verb: queue.Complete, Result: []byte(result)})
		}
		verdicts := settle()
		for i, refused := range []bool{true, true, false, true, false, true} {
			if v := verdicts[i]; v.Accepted() == refused {
				t.Errorf("outcome %d: %+v, refused should be %t", i, v, refused)
			}
		}
	})
}

// A flow reads the results of its nodes as text, so other bytes are refused where they come in. Only the first 64 KiB are looked at.
func TestTheResultOfANodeIsText(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		node, long := queue.Node{Definition: "f", Version: "1", Name: "a"}, strings.Repeat("x", 65535)
		w := &queuetest.Taker{Q: q, Worker: "w1"}
		for i, row := range []struct {
			node    queue.Node
			result  string
			refused bool
		}{
			{node, "", false}, {node, `{"a":1}`, false}, {node, "é\x00", false}, {node, "\xff", true}, {node, "\"\xc3\"", true}, {queue.Node{}, "\xff", false},
			{node, long + "é", false}, {node, long[1:] + "€" + long, false}, {node, long[1:] + "\xff", true}, {node, long + "x\xff", false},
		} {
			const want = "must be UTF-8 text, since a flow reads it: write other bytes in base64"
			id := queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprintf("0-t%d", i), Kind: "k", Node: row.node}).ID
			o := queue.Outcome{ID: id, Epoch: w.Take(t, id, "default").Epoch, Verb: queue.Complete, Result: []byte(row.result)}
			reply, err := claim.Of(q).Settle(t.Context(), 0, "w1", queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
			if err != nil || reply.Verdicts[0].Accepted() == row.refused || row.refused && !strings.Contains(reply.Verdicts[0].Why, want) {
				t.Errorf("the result %.20q of a task of the node %q: %+v, %v", row.result, row.node, reply.Verdicts, err)
			}
			promise := queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprintf("0-p%d", i), Kind: "k", Promise: true, Node: row.node}).ID
			r, err := q.Resolve(t.Context(), promise, []byte(row.result))
			if r.Done == row.refused || row.refused && (!errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), want)) {
				t.Errorf("the result %.20q of a promise of the node %q: %+v, %v", row.result, row.node, r, err)
			}
			agent := queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprintf("0-a%d", i), Kind: "k", Queue: "agents"}).ID
			queuetest.Enqueue(t, q, queue.Task{ID: agent + ".s-go", Kind: "signal", Queue: "agents", Promise: true, Node: row.node})
			r, err = q.Signal(t.Context(), agent, "go", []byte(row.result))
			if r.Done == row.refused || row.refused && (!errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), want)) {
				t.Errorf("the payload %.20q of a signal of the node %q: %+v, %v", row.result, row.node, r, err)
			}
		}
	})
}

// draw makes random types, values and texts. It draws no types that accept what encoding/json does not: a struct within itself and a
// member with the option string; base64, of which the type says string; keys of maps that are numbers. And no arrays, since
// encoding/json does not look at elements that are too many.
type draw struct{ *rand.Rand }

var leafTypes = []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float64](), reflect.TypeFor[time.Time](), reflect.TypeFor[any](), reflect.TypeFor[embedding](), reflect.TypeFor[hiding](), reflect.TypeFor[clash](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[int32](), reflect.TypeFor[uint8]()}

func (d draw) goType(depth int) reflect.Type {
	if depth == 0 {
		return leafTypes[d.IntN(len(leafTypes))]
	}
	switch d.IntN(6) {
	case 0:
		return reflect.PointerTo(d.goType(depth - 1))
	case 1:
		if elem := d.goType(depth - 1); elem.Kind() != reflect.Uint8 { // base64, see the test
			return reflect.SliceOf(elem)
		}
	case 3:
		return reflect.MapOf(reflect.TypeFor[string](), d.goType(depth-1))
	case 4:
		var fields []reflect.StructField
		for i := range d.IntN(5) {
			tag := []string{"", `json:"name%d"`, `json:"Name%d,omitempty"`, `json:",omitempty"`, `json:"a.b%d"`, `json:"é%d,omitzero"`}[d.IntN(6)]
			if strings.Contains(tag, "%d") {
				tag = fmt.Sprintf(tag, i)
			}
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: d.goType(depth - 1), Tag: reflect.StructTag(tag)})
		}
		return reflect.StructOf(fields)
	}
	return d.goType(0)
}

// fill sets a value at random.
func (d draw) fill(v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(d.Int64N(4e9), d.Int64N(1e9)).In(time.FixedZone("", 60*d.IntN(1000)))))
		return
	} else if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(d.value(2)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "é<&", "\"\\\n\x00\x7f", "true"}[d.IntN(5)])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := int64(d.Uint64()) >> d.IntN(64)
		v.SetInt(n >> max(0, 64-v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.Uint64() >> d.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Float64:
		v.SetFloat([]float64{0, -1, 1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 3}[d.IntN(7)])
	case reflect.Pointer:
		if depth > 0 && d.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 && d.IntN(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), d.IntN(3), 3))
			for i := range v.Len() {
				d.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			d.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		if depth > 0 && d.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for i := range d.IntN(3) {
				e := reflect.New(v.Type().Elem()).Elem()
				d.fill(e, depth-1)
				v.SetMapIndex(reflect.ValueOf(strings.Repeat("kK", i)), e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				d.fill(v.Field(i), depth-1)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(&[]any{nil, true, "x", 7.5, []any{}, map[string]any{"a": nil}}[d.IntN(6)]).Elem())
	}
}

// value returns a random JSON value.
func (d draw) value(depth int) string {
	leaves := []string{"null", "true", "false", "0", "-1", "300", "70000", "1.0", "1e2", "-0", "99999999999999999999", `"x"`, `""`, `"\u0041\n"`, "\"é\u212a\"",
		`"2026-11-26T20:00:00Z"`, `"2026-02-30T20:00:00Z"`, `"2026-11-26T20:00:00.5+23:59"`, "{}", "[]"}
	if depth == 0 {
		return leaves[d.IntN(len(leaves))]
	}
	var parts []string
	for range d.IntN(3) {
		parts = append(parts, d.value(depth-1))
	}
	if d.IntN(2) == 0 {
		return "[" + strings.Join(parts, " ,\n") + "]"
	}
	names := []string{"a", "A", "b", "F0", "f1", "name0", "NAME1", `na\u006de2`, "the c", "THE C", "Value", "é3", "Next", "-", "G", "f", "K", "y", "k", "\u212a", "z"}
	for i := range parts {
		parts[i] = fmt.Sprintf(`"%s" : %s`, names[d.IntN(len(names))], parts[i])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// change replaces a part of a JSON text by a random value, or one byte.
func (d draw) change(text string) string {
	var places [][2]int
	for i := range text {
		var raw json.RawMessage
		if decoder := json.NewDecoder(strings.NewReader(text[i:])); decoder.Decode(&raw) == nil {
			places = append(places, [2]int{i + int(decoder.InputOffset()) - len(raw), i + int(decoder.InputOffset())})
		}
	}
	if d.IntN(8) == 0 || len(places) == 0 {
		at := d.IntN(len(text) + 1)
		return text[:at] + string(`"{}[],:-+.eE01tfn\ x`[d.IntN(20)]) + text[min(len(text), at+d.IntN(2)):]
	}
	place := places[d.IntN(len(places))]
	return text[:place[0]] + d.value(d.IntN(3)) + text[place[1]:]
}

// What a type accepts can be decoded, and what can be decoded is accepted, but for null, what is missing or empty, and
// what is not UTF-8 (encoding/json would change it).
func TestWhatATypeAcceptsCanBeDecoded(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		seed := time.Now().UnixNano()
		d := draw{rand.New(rand.NewPCG(uint64(seed), 0))}
		p := &promises{t, q, map[string]string{}}
		accepted, refused := 0, 0
		for range 40 {
			of := d.goType(d.IntN(4))
			typ := queue.ResultType(of)
			for range 12 {
				v := reflect.New(of)
				d.fill(v.Elem(), 5)
				text, err := json.Marshal(v.Interface())
				if err != nil {
					t.Fatalf("seed %d: %v of %v: %v", seed, v, of, err)
				}
				whole := string(text)
				fault := p.fault(typ, whole)
				if fault != "" {
					t.Errorf("seed %d: %v, type %s: what json.Marshal wrote is refused: %s %s", seed, of, typ, whole, fault)
				}
				for range 2 {
					whole = d.change(whole)
					fault, err := p.fault(typ, whole), json.Unmarshal([]byte(whole), reflect.New(of).Interface())
					stricter := strings.HasSuffix(fault, "is null") || strings.HasSuffix(fault, "is missing") || strings.HasSuffix(fault, "is not UTF-8 text") || fault == "it is empty" ||
						strings.Contains(fault, "is not a time") // encoding/json takes some that RFC 3339 does not have, such as T0:00:00Z
					switch {
					case fault == "" && err != nil && whole != "":
						t.Errorf("seed %d: %v, type %s accepts %s: %v", seed, of, typ, whole, err)
					case fault != "" && err == nil && !stricter:
						t.Errorf("seed %d: %v, type %s refuses %s: %s", seed, of, typ, whole, fault)
					case fault == "":
						accepted++
					default:
						refused++
					}
				}
			}
		}
		if accepted < 50 || refused < 50 {
			t.Errorf("%d values were accepted, and %d refused", accepted, refused)
		}
	})
}
