package events_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Events that were trimmed before they were read are reported as a gap, once, and before the events behind them.
func TestTrimmedEventsAreReportedAsAGap(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	for _, test := range []struct {
		claim  string
		read   int // of 10 events, before
		keep   int64
		missed int64
	}{
		{"behind the reader nothing is lost", 7, 5, 0},
		{"the last event read is the oldest kept", 7, 4, 0},
		{"the last event read was trimmed, and no later one", 7, 3, 0},
		{"one unread event was trimmed", 6, 3, 1},
		{"all but the newest event were trimmed", 1, 1, 8},
		{"all were trimmed after they were read", 10, 0, 0},
		{"all were trimmed, some unread", 4, 0, 6},
		{"events were trimmed before the first read", 0, 2, 8},
	} {
		t.Run(test.claim, func(t *testing.T) {
			redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
				q := queuetest.Open(t, rdb, queue.Config{Events: "all"})
				began := read1(q)
				for range 10 {
					queuetest.Enqueue(t, q, queue.Task{})
				}
				if test.read > 0 {
					began = read(t, q, began, test.read).Next
				}
				all := read(t, q, events.Oldest, 10).Events
				if err := rdb.XTrimMaxLen(context.Background(), q.EventsKey(0), test.keep).Err(); err != nil {
					t.Fatal(err)
				}
				kept := all[10-test.keep:]
				oldest := "0-0"
				if len(kept) > 0 {
					oldest = kept[0].ID
				}
				var want []events.Gap
				if test.missed > 0 {
					want = []events.Gap{{Missed: test.missed, Oldest: oldest}}
				}
				unread := all[max(test.read, 10-int(test.keep)):]
				b := read(t, q, began, 1)
				if !reflect.DeepEqual(b.Gaps, want) || !equalEvents(b.Events, unread[:min(len(unread), 1)]) {
					t.Errorf("read %+v, want gaps %v and the first of %v", b, want, unread)
				}
				for range 12 { // the gap is reported once, even with pages of one event, and at the end of the stream
					got := len(b.Events)
					b = read(t, q, b.Next, 1)
					unread = unread[got:]
					if b.Gaps != nil || !equalEvents(b.Events, unread[:min(len(unread), 1)]) {
						t.Errorf("read on %+v, want no gap and the first of %v", b, unread)
					}
				}
				// A new event is read, without another gap.
				r := queuetest.Enqueue(t, q, queue.Task{})
				if b = read(t, q, b.Next, 10); b.Gaps != nil || len(b.Events) != 1 || b.Events[0].TaskID != r.ID {
					t.Errorf("then %+v, want one event", b)
				}
			})
		})
	}
}

// A program that reads for the first time learns that it does not see the first events.
func TestOldestReportsWhatWasTrimmed(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Events: "all"})
		queuetest.Busy(t, q, 4)
		if err := rdb.XTrimMaxLen(context.Background(), q.EventsKey(0), 3).Err(); err != nil {
			t.Fatal(err)
		}
		b := read(t, q, events.Oldest, 100)
		if len(b.Events) != 3 || !reflect.DeepEqual(b.Gaps, []events.Gap{{Missed: b.Events[0].Number - 1, Oldest: b.Events[0].ID}}) {
			t.Errorf("read %+v, want 3 events and a gap of the others", b)
		}
		if next := read(t, q, b.Next, 100); next.Gaps != nil || next.Events != nil {
			t.Errorf("read on %+v, want nothing", next)
		}
	})
}

// A stream that ends before the cursor is another stream, or an older state of it.
func TestAStreamThatWasSetBackIsReported(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
			q := queuetest.Open(t, rdb, queue.Config{Partitions: partitions, Events: "all"})
			queuetest.Busy(t, q, 9)
			b := read(t, q, events.Oldest, 100)
			old := b.Events[0].ID
			key := q.EventsKey(b.Events[0].Partition)
			p := b.Events[0].Partition
			ctx := context.Background()
			if err := rdb.Del(ctx, key).Err(); err != nil {
				t.Fatal(err)
			}
			gone := read(t, q, b.Next, 10)
			if want := []events.Gap{{Partition: p, Missed: -1, SetBack: true, Oldest: "0-0"}}; !reflect.DeepEqual(gone.Gaps, want) {
				t.Errorf("after DEL: %+v, want %v", gone, want)
			}
			if again := read(t, q, gone.Next, 10); again.Gaps != nil || again.Events != nil {
				t.Errorf("then %+v, want nothing", again)
			}
			// An older state comes back, with an entry that is before the cursor.
			if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: old, Values: []string{"kind", "x"}}).Err(); err != nil {
				t.Fatal(err)
			}
			back := read(t, q, b.Next, 10)
			if want := []events.Gap{{Partition: p, Missed: -1, SetBack: true, Oldest: old}}; !reflect.DeepEqual(back.Gaps, want) {
				t.Errorf("set back: %+v, want %v", back, want)
			}
			if b := read(t, q, back.Next, 10); b.Gaps != nil || len(b.Events) != 1 || b.Events[0].ID != old {
				t.Errorf("then %+v, want the event %s", b, old)
			}
		})
	}
}
