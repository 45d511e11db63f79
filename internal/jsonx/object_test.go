package jsonx

import (
	"encoding/json"
	"math"
	"testing"
)

func TestFieldsAreWrittenByTheirNames(t *testing.T) {
	for _, row := range []struct{ claim, name, value, want string }{
		{"a text", "error", "boom", `{"error":"boom"}`},
		{"a text of digits", "result", "42", `{"result":"42"}`},
		{"a text with escapes", "error", "a\"b\\\n<é>", `{"error":"a\"b\\\n<é>"}`},
		{"a text that is not UTF-8", "result", "\xff\x00", `{"result_base64":"/wA="}`},
		{"a name that is not UTF-8", "\xff", "x", `{"base64:/w==":"x"}`},
		{"an empty text", "error", "", `{"error":""}`},
		{"a number", "epoch", "3", `{"epoch":3}`},
		{"a number by the end of its name", "completed_at", "1800000000000", `{"completed_at":1800000000000}`},
		{"a span by the end of its name", "new_ms", "5", `{"new_ms":5}`},
		{"a negative number", "seq", "-1", `{"seq":-1}`},
		{"a fraction", "tokens", "1.25", `{"tokens":1.25}`},
		{"an empty number", "epoch", "", `{"epoch":null}`},
		{"the greatest exact number", "epoch", "9007199254740992", `{"epoch":9007199254740992}`},
		{"a number that a double does not hold", "epoch", "9007199254740993", `{"epoch":"9007199254740993"}`},
		{"a number with a leading zero", "epoch", "007", `{"epoch":"007"}`},
		{"a number in the form of a float", "epoch", "1e3", `{"epoch":"1e3"}`},
		{"a point without digits", "tokens", "1.", `{"tokens":"1."}`},
		{"a number that is a word", "epoch", "x", `{"epoch":"x"}`},
	} {
		var o Object
		o.Field(row.name, row.value)
		got := o.Close()
		if string(got) != row.want || !json.Valid(got) {
			t.Errorf("%s: Field(%q, %q) = %s, want %s", row.claim, row.name, row.value, got, row.want)
		}
	}
}

// The version of a definition is a text. Other versions are numbers.
func TestANodeIsThreeMembers(t *testing.T) {
	for _, row := range []struct {
		fields map[string]string
		want   string
	}{
		{map[string]string{"node": "f 1 draw", "epoch": "2"}, `{"definition":"f","epoch":2,"node":"draw","version":"1"}`},
		{map[string]string{"node": "draw", "definition": "f", "version": "7"}, `{"definition":"f","node":"draw","version":"7"}`}, // of an event
		{map[string]string{"node": "10.0.0.1:6379", "version": "8"}, `{"node":"10.0.0.1:6379","version":8}`},
	} {
		var o Object
		o.Fields(row.fields)
		if got := string(o.Close()); got != row.want {
			t.Errorf("Fields(%v) = %s, want %s", row.fields, got, row.want)
		}
	}
}

func TestMembersKeepTheOrderOfTheCalls(t *testing.T) {
	var o Object
	o.Word("z", "last letter")
	o.Number("n", -7)
	o.Flag("f", true)
	o.Float("whole", 1e15)
	o.Float("part", 0.5)
	o.Float("inf", math.Inf(-1))
	o.Object("fields", map[string]string{"b": "2", "a": "1", "epoch": "3"})
	o.Fields(map[string]string{"d": "x", "c": "y"})
	o.Word("z", "again")
	if o.Name("n") {
		t.Error("Name of a member that exists = true")
	}
	const want = `{"z":"last letter","n":-7,"f":true,"whole":1000000000000000,"part":0.5,"inf":"-Inf","fields":{"a":"1","b":"2","epoch":3},"c":"y","d":"x"}`
	if got := string(o.Close()); got != want {
		t.Errorf("the object is\n%s, want\n%s", got, want)
	}
	var empty Object
	if got := string(empty.Close()); got != "{}" {
		t.Errorf("the empty object is %s", got)
	}
}

func TestANumberHasOneText(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "7": 7, "18446744073709551615": math.MaxUint64} {
		if n, ok := Decimal(text); n != want || !ok {
			t.Errorf("Decimal(%q) = %d, %v, want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"", "00", "07", "+7", "-7", " 7", "7 ", "1e3", "0x7", "7.0", "18446744073709551616", "٣"} {
		if n, ok := Decimal(text); ok {
			t.Errorf("Decimal(%q) = %d, want it refused", text, n)
		}
	}
}
