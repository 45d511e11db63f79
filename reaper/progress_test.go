package reaper

import (
	"reflect"
	"testing"
)

// Each count of Swept is progress: a reaper whose sweep did something sweeps again at once, even if
// the sweep also reports errors.
func TestEachCountOfASweepIsProgress(t *testing.T) {
	if progress(Swept{Errors: []string{"x"}, Turn: true}) {
		t.Error("progress is true for a sweep that did nothing")
	}
	counts := 0
	for i := range reflect.TypeFor[Swept]().NumField() {
		var s Swept
		if field := reflect.ValueOf(&s).Elem().Field(i); field.Kind() == reflect.Int {
			field.SetInt(1)
			counts++
			if !progress(s) {
				t.Errorf("progress is false for a sweep with %s = 1", reflect.TypeFor[Swept]().Field(i).Name)
			}
		}
	}
	if counts < 9 {
		t.Errorf("Swept has %d counts, want at least 9", counts)
	}
}
