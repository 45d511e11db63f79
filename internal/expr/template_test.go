package expr

import "testing"

// People read the text around a value, and programs other than a JSON reader.
func TestATextHasObjectsAsPlainJSON(t *testing.T) {
	x, err := CompileTemplate("<p>{{ inputs.parameters }}</p>", []string{"inputs"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Value(map[string]any{"inputs": map[string]any{"parameters": map[string]any{"text": "<a> & b"}}})
	if want := `<p>{"text":"<a> & b"}</p>`; err != nil || got != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
}
