package inspect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

func TestAFieldOfFiguresIsRead(t *testing.T) {
	fresh := func() *KindFigures {
		return &KindFigures{Duration: newHistogram(timeBounds), Waiting: newHistogram(timeBounds), Lag: newHistogram(lagBounds), Share: newHistogram(shareBounds)}
	}
	for _, test := range []struct {
		name, field string
		want        func(f *KindFigures)
	}{
		{"an end without a reason", "ended COMPLETED", func(f *KindFigures) { f.Ends = []Ends{{queue.Completed, "", "", 3}} }},
		{"an end with a reason", "ended CANCELLED not_needed", func(f *KindFigures) { f.Ends = []Ends{{queue.Cancelled, "not_needed", "", 3}} }},
		{"a timeout", "ended FAILED timeout queue", func(f *KindFigures) { f.Ends = []Ends{{queue.Failed, "timeout", "queue", 3}} }},
		{"a bucket", "duration 5", func(f *KindFigures) { f.Duration.Counts[2] = 3 }},
		{"the last bucket", "lag more", func(f *KindFigures) { f.Lag.Counts[22] = 3 }},
		{"a sum", "share sum", func(f *KindFigures) { f.Share.Sum = 0.003 }},
		{"a bound that a newer version added", "waiting 7", func(f *KindFigures) { f.Waiting.Counts[3] = 3 }},
		{"a bound above all", "waiting 99999999999", func(f *KindFigures) { f.Waiting.Counts[24] = 3 }},
		{"a figure that a newer version added", "size 7", func(*KindFigures) {}},
		{"a bound that is not a number", "waiting x", func(*KindFigures) {}},
		{"an empty field", "", func(*KindFigures) {}},
	} {
		got, want := fresh(), fresh()
		got.add(strings.Split(test.field, " "), 3)
		test.want(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q is read as %+v, want %+v", test.name, test.field, got, want)
		}
	}
}
