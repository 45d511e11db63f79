package inspect_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
)

// A task of a low priority is behind others in line and can have waited for longer.
func TestTheOldestTaskOfEachQueueIsFound(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		l.add("low", queue.Task{Queue: "a"})
		l.add("low, later", queue.Task{Queue: "a"})
		for i := range 4 {
			l.add("high", queue.Task{Queue: "a", Priority: i})
		}
		l.add("delayed", queue.Task{Queue: "b", Delay: time.Hour})
		l.add("running", queue.Task{Queue: "c"})
		l.take(l.names["running"], "c")
		l.add("last", queue.Task{Queue: "b"})
		got, err := inspect.OldestWaiting(t.Context(), l.Queue)
		want := []inspect.Oldest{
			{"a", l.names["low"], testclock.Start.Add(time.Millisecond), 8 * time.Millisecond},
			{"b", l.names["last"], testclock.Start.Add(9 * time.Millisecond), 0},
		}
		for i := range got {
			got[i].Since = got[i].Since.UTC()
		}
		for i := range want {
			want[i].Since = want[i].Since.UTC()
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("OldestWaiting = %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestTheJSONOfWorkersAndOldestTasksUsesTheVocabulary(t *testing.T) {
	at := testclock.Start
	for _, value := range []any{
		inspect.Oldest{Queue: "a", ID: "0-a", Since: at, Wait: time.Second},
		inspect.Worker{ID: "w", State: queue.WorkerRunning, StopAsked: at, Held: 1, LeaseEnds: at, Name: "n", Host: "h", PID: 7, Concurrency: 5,
			Queues: map[string]int{"a": 2}, Kinds: []string{"k"}, StartedAt: at},
		inspect.Worker{ID: "w", LeaseEnds: at, Strict: []string{"a", "b"}},
	} {
		text := jsonline.Encode(value)
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Errorf("%v: %s", err, text)
		} else if err := vocabulary.CheckJSON(object); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}
