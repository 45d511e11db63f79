package jsonx

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

type word string

type base struct {
	ID string `json:"id"`
}

type inner struct {
	At time.Time `json:"at,omitzero"`
}

type marshals struct{}

func (marshals) MarshalJSON() ([]byte, error) { return []byte(`{"own":true}`), nil }

func TestValuesAreWrittenByTheirTypes(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	for _, row := range []struct {
		claim string
		value any
		want  string
	}{
		{"instants and spans in ms", struct {
			At   time.Time         `json:"at"`
			Wait time.Duration     `json:"wait_ms"`
			Lag  duration.Duration `json:"lag_ms"`
		}{at, 1500 * time.Millisecond, duration.Duration(2 * time.Second)}, `{"at":1800000000123,"wait_ms":1500,"lag_ms":2000}`},
		{"bytes that are not UTF-8", struct {
			A []byte `json:"a"`
			B string `json:"b"`
			C word   `json:"c"`
		}{[]byte("\xff"), "\xfe", "é"}, `{"a_base64":"/w==","b_base64":"/g==","c":"é"}`},
		{"no HTML escapes", map[string]string{"b": "<&>", "a": "\n"}, `{"a":"\n","b":"<&>"}`},
		{"embedded fields, and no fields without a tag", struct {
			base
			Hidden int
			Not    int `json:"-"`
		}{base{"x"}, 1, 2}, `{"id":"x"}`},
		{"empty fields are left out", struct {
			A *inner         `json:"a,omitempty"`
			B []string       `json:"b,omitempty"`
			C map[string]int `json:"c,omitempty"`
			D inner          `json:"d"`
			E int            `json:"e,omitempty"`
		}{B: []string{}, C: map[string]int{}}, `{"d":{}}`},
		{"nil lists and maps are empty", struct {
			A []string       `json:"a"`
			B map[string]int `json:"b"`
			C *inner         `json:"c"`
		}{}, `{"a":[],"b":{},"c":null}`},
		{"lists of objects", map[string]any{"l": []*inner{{at}, nil}, "n": nil, "f": true, "x": 1.5}, `{"f":true,"l":[{"at":1800000000123},null],"n":null,"x":1.5}`},
		{"values that encode themselves", struct {
			A marshals  `json:"a"`
			B *marshals `json:"b"`
		}{B: &marshals{}}, `{"a":{"own":true},"b":{"own":true}}`},
	} {
		if got := string(Encode(row.value)); got != row.want || !json.Valid([]byte(got)) {
			t.Errorf("%s: Encode(%+v) = %s, want %s", row.claim, row.value, got, row.want)
		}
	}
}
