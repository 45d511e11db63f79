package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/events"
)

// crashEvents returns the events of a scene that kept its promises.
func crashEvents() (seen []events.Event) {
	due := time.UnixMilli(1_800_000_000_000)
	for i := range dated + undated {
		seen = append(seen, events.Event{Kind: "task_started", TaskID: fmt.Sprint(i), Worker: "victim", Epoch: 1})
	}
	for i := range dated {
		seen = append(seen, events.Event{Kind: "task_timed_out", TaskID: fmt.Sprint(i), At: due, Fields: map[string]string{"deadline_at": "1800000000000"}})
	}
	for i := dated; i < dated+undated; i++ {
		seen = append(seen, events.Event{Kind: "task_lease_lost", TaskID: fmt.Sprint(i)}, events.Event{Kind: "task_completed", TaskID: fmt.Sprint(i), Worker: "other", Epoch: 2})
	}
	return seen
}

func TestABrokenPromiseOfCrashIsFound(t *testing.T) {
	if err := checkCrash(crashEvents(), "victim", "other"); err != nil {
		t.Fatal(err)
	}
	last := dated + undated + dated + 2*undated - 1
	for _, row := range []struct {
		want   string
		change func(seen []events.Event) []events.Event
	}{
		{"ended twice", func(seen []events.Event) []events.Event { return append(seen, seen[last]) }},
		{"came 501ms late", func(seen []events.Event) []events.Event {
			seen[dated+undated].At = seen[dated+undated].At.Add(501 * time.Millisecond)
			return seen
		}},
		{"was completed by the worker victim", func(seen []events.Event) []events.Event { seen[last].Worker = "victim"; return seen }},
		{"ended with task_failed", func(seen []events.Event) []events.Event { seen[last].Kind = "task_failed"; return seen }},
		{"3 tasks timed out and 1 were completed", func(seen []events.Event) []events.Event { return seen[:last] }},
		{"claimed 4 tasks", func(seen []events.Event) []events.Event { return seen[1:] }},
	} {
		if err := checkCrash(row.change(crashEvents()), "victim", "other"); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
}
