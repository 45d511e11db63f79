package reaper

import (
	"reflect"
	"testing"
)

// Whatever a sweep did is progress: a reaper that met an error beside it goes on at once.
func TestWhateverASweepDidIsProgress(t *testing.T) {
	if progress(Swept{Errors: []string{"x"}, Turn: true}) {
		t.Error("a sweep that did nothing made progress")
	}
	counts := 0
	for i := range reflect.TypeFor[Swept]().NumField() {
		var s Swept
		if field := reflect.ValueOf(&s).Elem().Field(i); field.Kind() == reflect.Int {
			field.SetInt(1)
			counts++
			if !progress(s) {
				t.Errorf("%s is no progress", reflect.TypeFor[Swept]().Field(i).Name)
			}
		}
	}
	if counts < 9 {
		t.Errorf("%d counts", counts)
	}
}
