package jsonx

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

type secretType struct {
	N int
	L []secretType
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("no paper") }

func TestNoErrorNamesAGoType(t *testing.T) {
	encode := func(v any) error { _, err := json.Marshal(v); return err }
	for _, err := range []error{
		json.Unmarshal([]byte(`{"N":"x"}`), new(secretType)), json.Unmarshal([]byte(`{"L":[{"N":1.5}]}`), new(secretType)),
		json.Unmarshal([]byte(`[1]`), new(secretType)), json.Unmarshal([]byte(`{`), new(secretType)),
		encode(make(chan secretType)), encode(map[string]any{"a": func(secretType) {}}), encode(failing{}),
	} {
		text := Plain(err).Error()
		for _, name := range []string{"secretType", "jsonx", "failing", "chan", "func", "Go ", "int"} {
			if strings.Contains(text, name) {
				t.Errorf("%q names %q", text, name)
			}
		}
		if !errors.Is(Plain(err), err) {
			t.Errorf("%q does not wrap the original error", text)
		}
	}
	if text := Plain(json.Unmarshal([]byte(`{"N":"x"}`), new(secretType))).Error(); text != "JSON: field N must not be a string" {
		t.Errorf("the text is %q, want JSON: field N must not be a string", text)
	}
	if err := Plain(nil); err != nil {
		t.Errorf("Plain of nil = %v, want nil", err)
	}
	if other := errors.New("other"); Plain(other) != other {
		t.Error("an error of another package was changed")
	}
}
