package events_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A stream is bounded in bytes, whether its entries have many events or one.
func TestTheStreamOfEventsIsCapped(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Events: "all", EventMiB: 2})
		size := func() (bytes int) {
			entries, err := rdb.XRange(ctx, q.EventsKey(0), "-", "+").Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				bytes += len(fmt.Sprint(entry.Values["events"]))
			}
			return bytes
		}
		most, told := 0, 0
		kind := strings.Repeat("k", 128)
		for told < 5<<20 {
			tasks := make([]queue.Task, 1000)
			for i := range tasks {
				tasks[i] = queue.Task{Kind: kind}
			}
			receipts, err := q.EnqueueAll(ctx, tasks)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Cancel(ctx, receipts[0].ID, ""); err != nil { // an entry of one event
				t.Fatal(err)
			}
			told += 1001 * 190
			most = max(most, size())
		}
		if now := size(); most > 3<<20+1<<17 || now < 2<<20 {
			t.Errorf("after %d bytes of events the stream has %d, and had at most %d, want 2 to 3 MiB", told, now, most)
		}
		// A reader that comes late gets the exact number of events that it missed.
		stats := read(t, q, events.Newest, 1).Next
		b := read(t, q, events.Cursor("0-0@0"), 1)
		if len(b.Gaps) != 1 || len(b.Events) != 1 || b.Gaps[0].Missed != b.Events[0].Number-1 || b.Gaps[0].Missed < 5000 {
			t.Errorf("from the first event: %+v", b)
		}
		all := append(b.Events, readFrom(t, q, b.Next, 10_000)...)
		if last := all[len(all)-1]; !strings.HasSuffix(string(stats), fmt.Sprint("@", last.Number)) || int(last.Number) != len(all)+int(b.Gaps[0].Missed) {
			t.Errorf("%d events are kept, and %d were missed; the last has the number %d, the newest cursor is %s", len(all), b.Gaps[0].Missed, last.Number, stats)
		}
		inOrder(t, all)
	})
}

// A large unit of work has several entries, and a reader can stop within one.
func TestEventsOfOneCallAreReadInPartsAndOnce(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Events: "all"})
		owner := queuetest.Enqueue(t, q, queue.Task{}).ID
		for i := range 3 {
			tasks := make([]queue.Task, 500)
			for n := range tasks {
				tasks[n] = queue.Task{Kind: "k", ID: fmt.Sprintf("%s.%d-%s-%d", owner, i, strings.Repeat("x", 200), n)}
			}
			if _, err := q.EnqueueAll(ctx, tasks); err != nil {
				t.Fatal(err)
			}
		}
		entries := rdb.XLen(ctx, q.EventsKey(0)).Val()
		if entries < 7 || entries > 12 {
			t.Errorf("1,501 events of 250 bytes have %d entries, want one for each 64 KiB", entries)
		}
		for _, n := range []int{37, 64, 499, 10_000} {
			all := readAll(t, q, n)
			inOrder(t, all)
			if len(all) != 1501 {
				t.Errorf("pages of %d: %d events, want 1501", n, len(all))
			}
		}
	})
}
