package inspect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

func TestAFieldOfFiguresIsRead(t *testing.T) {
	fresh := func() *KindFigures { return newFigures("k", "default") }
	lag := func(f *KindFigures, of queue.TimeoutType, bucket int) {
		f.Lag.Counts[bucket] = 3
		f.LagBy[of] = newHistogram(lagBounds)
		f.LagBy[of].Counts[bucket] = 3
	}
	for _, test := range []struct {
		name, field string
		want        func(f *KindFigures)
	}{
		{"an end without a reason", "ended COMPLETED", func(f *KindFigures) { f.Ends = []Ends{{queue.Completed, "", "", "", 3}} }},
		{"an end with a reason", "ended CANCELLED not_needed", func(f *KindFigures) { f.Ends = []Ends{{queue.Cancelled, "not_needed", "", "", 3}} }},
		{"a timeout", "ended FAILED timeout queue fail", func(f *KindFigures) { f.Ends = []Ends{{queue.Failed, "timeout", "queue", "fail", 3}} }},
		{"a timeout of an older version", "ended FAILED timeout queue", func(f *KindFigures) { f.Ends = []Ends{{queue.Failed, "timeout", "queue", "", 3}} }},
		{"a new task", "enqueued hook later", func(f *KindFigures) { f.Enqueued = []Enqueued{{FromHook, true, 3}} }},
		{"a new task from a source that a newer version added", "enqueued schedule now", func(f *KindFigures) { f.Enqueued = []Enqueued{{"schedule", false, 3}} }},
		{"a start that a newer version added", "enqueued hook soon", func(*KindFigures) {}},
		{"a timeout with an attempt", "timed 5", func(f *KindFigures) { f.Duration.Counts[2], f.Timed.Counts[2] = 3, 3 }},
		{"an agent that was woken", "woken n_of_m satisfied 1", func(f *KindFigures) {
			f.Wakeups = []Wakeups{{queue.WaitNOfM, "satisfied", newHistogram(lagBounds)}}
			f.Wakeups[0].Lag.Counts[0] = 3
		}},
		{"an attempt that timed out", "retried timeout", func(f *KindFigures) { f.AttemptTimeouts = 3 }},
		{"a reason for retries that a newer version added", "retried error", func(*KindFigures) {}},
		{"a wait that timed out", "wait timeout fail", func(f *KindFigures) { f.WaitTimeouts["fail"] = 3 }},
		{"a figure of waits that a newer version added", "wait began fail", func(*KindFigures) {}},
		{"a late outcome", "late", func(f *KindFigures) { f.Late = 3 }},
		{"a bucket", "duration 5", func(f *KindFigures) { f.Duration.Counts[2] = 3 }},
		{"the last bucket", "lag queue more", func(f *KindFigures) { lag(f, "queue", 22) }},
		{"a lag of an older version", "lag 1", func(f *KindFigures) { lag(f, "", 0) }},
		{"a sum", "share sum", func(f *KindFigures) { f.Share.Sum = 0.003 }},
		{"a bound that a newer version added", "waiting 7", func(f *KindFigures) { f.Waiting.Counts[3] = 3 }},
		{"a bound above all", "waiting 99999999999", func(f *KindFigures) { f.Waiting.Counts[24] = 3 }},
		{"an end of a node", "node build ended FAILED timeout queue fail", func(f *KindFigures) {
			f.Nodes = []NodeFigures{{Node: "build", Ends: []Ends{{queue.Failed, "timeout", "queue", "fail", 3}}}}
		}},
		{"an attempt of a node that timed out", "node build retried timeout", func(f *KindFigures) { f.Nodes = []NodeFigures{{Node: "build", AttemptTimeouts: 3}} }},
		{"a figure of nodes that a newer version added", "node build began", func(*KindFigures) {}},
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
