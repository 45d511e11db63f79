package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// telling runs a test in namespaces of 1 and 3 partitions that write all events.
func telling(t *testing.T, test func(t *testing.T, q *queue.Queue)) {
	t.Helper()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d partitions", n), func(t *testing.T) {
				test(t, queuetest.Open(t, rdb, queue.Config{Namespace: fmt.Sprintf("of%d", n), Partitions: n, Events: "all"}))
			})
		}
	})
}

// read returns a batch, and fails the test on an error.
func read(tb testing.TB, q *queue.Queue, from events.Cursor, n int) events.Batch {
	tb.Helper()
	b, err := events.Read(context.Background(), q, from, n, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func read1(q *queue.Queue) events.Cursor {
	b, _ := events.Read(context.Background(), q, events.Newest, 1, 0)
	return b.Next
}

// readAll returns all events, read in batches of at most n.
func readAll(tb testing.TB, q *queue.Queue, n int) []events.Event {
	tb.Helper()
	return readFrom(tb, q, events.Oldest, n)
}

// readFrom returns the events behind a cursor, none of which was lost, read in batches of at most n.
func readFrom(tb testing.TB, q *queue.Queue, at events.Cursor, n int) (all []events.Event) {
	tb.Helper()
	for {
		b := read(tb, q, at, n)
		if len(b.Events) == 0 {
			return all
		}
		if len(b.Events) > n || b.Gaps != nil {
			tb.Fatalf("a page of %d has %d events, gaps %v", n, len(b.Events), b.Gaps)
		}
		all, at = append(all, b.Events...), b.Next
	}
}

func TestReadContinuesExactlyBehindTheCursor(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		queuetest.Busy(t, q, 8)
		all := read(t, q, events.Oldest, 1000)
		if len(all.Events) != 24 || all.Gaps != nil {
			t.Fatalf("read %d events, gaps %v, want 24 and none", len(all.Events), all.Gaps)
		}
		at := events.Oldest
		for i := range all.Events {
			rest := read(t, q, at, 1000)
			if !equalEvents(rest.Events, all.Events[i:]) || rest.Gaps != nil || rest.Next != all.Next {
				t.Fatalf("from %q: %v, gaps %v, next %q, want %v, next %q", at, rest.Events, rest.Gaps, rest.Next, all.Events[i:], all.Next)
			}
			one := read(t, q, at, 1)
			if !equalEvents(one.Events, all.Events[i:i+1]) || one.Next == at {
				t.Fatalf("the event behind %q = %v, want %v", at, one.Events, all.Events[i])
			}
			at = one.Next
		}
		for range 2 {
			if end := read(t, q, at, 1); end.Events != nil || end.Gaps != nil || end.Next != all.Next {
				t.Errorf("behind the last event: %+v, want nothing and %q", end, all.Next)
			}
		}
		inOrder(t, all.Events)
	})
}

func equalEvents(a, b []events.Event) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return slices.Equal(x, y) || len(a) == 0 && len(b) == 0
}

// inOrder checks that events are in the order that Read promises.
func inOrder(tb testing.TB, events []events.Event) {
	tb.Helper()
	last := map[int]int64{}
	for i, e := range events {
		if i > 0 && e.At.Before(events[i-1].At) {
			tb.Errorf("%v is listed behind the later %v", e, events[i-1])
		}
		if before := last[e.Partition]; e.Number != before+1 && (before > 0 || e.Number < 1) {
			tb.Errorf("partition %d has event %d behind %d", e.Partition, e.Number, before)
		}
		last[e.Partition] = e.Number
	}
}

func TestAllEventsOfManyPartitionsAreReadOnceWhateverThePage(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Partitions: 20, Events: "all"})
	queuetest.Busy(t, q, 200)
	for _, n := range []int{7, 64, 10_000} {
		seen := map[string]int{}
		all := readAll(t, q, n)
		for _, e := range all {
			seen[fmt.Sprint(e.Partition, " ", e.Number)]++
		}
		inOrder(t, all) // across pages too, since no call writes meanwhile
		for e, times := range seen {
			if times != 1 {
				t.Errorf("pages of %d: %s was read %d times", n, e, times)
			}
		}
		if len(seen) != 600 {
			t.Errorf("pages of %d: read %d events, want 600", n, len(seen))
		}
	}
}

func TestAnEventDescribesItsTransition(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Library: testclock.Library(t, rdb), Events: "all"})
		owner := queuetest.Enqueue(t, q, queue.Task{Queue: "q"}).ID
		(&queuetest.Taker{Q: q, Worker: "w1"}).Take(t, owner, "q")
		queuetest.Enqueue(t, q, queue.Task{ID: owner + ".1", Timeout: time.Second})
		testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(1500*time.Millisecond))
		if _, err := reaper.Sweep(context.Background(), q, 0, "reaper", 10, time.Second); err != nil {
			t.Fatal(err)
		}
		found := read(t, q, events.Oldest, 10).Events
		if len(found) != 4 {
			t.Fatalf("read %v, want 4 events", found)
		}
		last := found[3]
		last.ID = "1-1" // the real one is made from the server's clock, which is not stopped
		want := events.Event{Kind: "task_timed_out", TaskID: owner + ".1", TaskKind: "k", Queue: "default", At: time.UnixMilli(1_800_000_001_500),
			CreatedAt: time.UnixMilli(1_800_000_000_000), Attempt: 1, Owner: owner, Root: owner, Number: 4, ID: "1-1", Fields: map[string]string{
				"timeout_type": "execution", "timeout_duration_ms": "1000", "policy_applied": "fail", "deadline_at": "1800000001000",
				"detected_at": "1800000001500", "lag_ms": "500"}}
		if !reflect.DeepEqual(last, want) {
			t.Errorf("the last event is\n%+v, want\n%+v", last, want)
		}
		got, err := json.Marshal(last)
		const line = `{"kind":"task_timed_out","task_id":"0-A.1","task_kind":"k","queue":"default","at":1800000001500,"created_at":1800000000000,"started_at":null,"epoch":0,"attempt":1,"worker":"",` +
			`"agent_execution_id":"0-A","workflow_run_id":"0-A","partition":0,"number":4,"id":"1-1","deadline_at":1800000001000,"detected_at":1800000001500,"lag_ms":500,` +
			`"policy_applied":"fail","timeout_duration_ms":1000,"timeout_type":"execution"}`
		if got := strings.ReplaceAll(string(got), owner, "0-A"); err != nil || got != line {
			t.Errorf("got  %s, %v\nwant %s", got, err, line)
		}
		if started := found[1]; started.Kind != "task_started" || started.Worker != "w1" || started.Epoch != 1 || len(started.Fields) != 0 {
			t.Errorf("the second event is %+v, want task_started by w1", started)
		}
	})
}

func TestANamespaceWithEventsNoneHasNoEvents(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Events: "none"})
		queuetest.Busy(t, q, 3)
		if b := read(t, q, events.Oldest, 10); b.Events != nil || b.Gaps != nil {
			t.Errorf("read %+v, want nothing", b)
		}
		if b := read(t, q, read1(q), 10); b.Events != nil || b.Gaps != nil {
			t.Errorf("read %+v, want nothing", b)
		}
	})
}

func TestEntriesOfOtherProgramsDoNotStopTheReader(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	telling(t, func(t *testing.T, q *queue.Queue) {
		rdb, key, ctx := q.Client(), q.EventsKey(q.Partitions()-1), context.Background()
		queuetest.Busy(t, q, 1)
		for _, values := range [][]any{
			{"hello", "world"},
			{"", ""},
			{"kind", "x", "kind", "y"},
			{"at", "yesterday", "epoch", "-1", "attempt", "9999999999999999999"},
			{"id", "1", "partition", "no", "kind", "\xff\x00", "\xfe", "\xfd"},
			{"at", "18446744073709551615"},
			{"large", strings.Repeat("x", 1<<20)},
		} {
			if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		queuetest.Busy(t, q, 1)
		all := readAll(t, q, 100)
		kinds := map[string]int{}
		for _, e := range all {
			kinds[e.Kind]++
			line, err := json.Marshal(e)
			var back map[string]any
			if err != nil || json.Unmarshal(line, &back) != nil || back["id"] != e.ID || back["partition"] != float64(e.Partition) {
				t.Errorf("JSON of %s = %.200s, %v", e.ID, line, err)
			}
		}
		if len(all) != 13 || kinds["task_completed"] != 2 || kinds[""] != 7 {
			t.Errorf("read %d events of kinds %v, want 6 of ours and 7 others", len(all), kinds)
		}
	})
}

func TestInvalidArgumentsOfReadAreRefused(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		for _, test := range []struct {
			from events.Cursor
			n    int
			wait time.Duration
			want string
		}{
			{events.Oldest, 0, 0, "n 0 must be 1 to 10000"},
			{events.Oldest, 10_001, 0, "n 10001 must be"},
			{events.Oldest, 1, -1, "wait -1ns must not be negative"},
			{"latest", 1, 0, `cursor "latest" is not valid: it must be "" for the oldest event, "now", or the Next of an earlier read`},
			{"0-0@0,0-0@0", 1, 0, "cursor is for 2 partitions, and this namespace has"},
		} {
			b, err := events.Read(ctx, q, test.from, test.n, test.wait)
			if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), test.want) || b.Next != test.from {
				t.Errorf("Read(%q, %d, %v) = %+v, %v, want %q", test.from, test.n, test.wait, b, err, test.want)
			}
		}
		if err := q.Client().Set(ctx, q.EventsKey(0), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := events.Read(ctx, q, events.Oldest, 1, 0); err == nil || !strings.Contains(err.Error(), q.EventsKey(0)) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("Read of a key that is a string = %v, want the key and WRONGTYPE", err)
		}
	})
}
