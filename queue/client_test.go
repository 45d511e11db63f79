package queue_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const unknown = "0-0000000000000gone"

func TestGetAllKeepsTheOrderOfTheList(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		var ids []string
		for range 9 {
			ids = append(ids, queuetest.Enqueue(t, q, queue.Task{}).ID)
		}
		list := []string{ids[8], unknown, ids[0], ids[3], ids[0], ids[0] + ".child", ids[8]}
		records, err := q.GetAll(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range records {
			if r == nil {
				got = append(got, "nil")
			} else {
				got = append(got, r.ID)
			}
		}
		if want := []string{ids[8], "nil", ids[0], ids[3], ids[0], "nil", ids[8]}; !reflect.DeepEqual(got, want) {
			t.Errorf("GetAll = %v, want %v", got, want)
		}
	})
}

func TestARecordHasTheFieldsOfItsTask(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Library: testclock.Library(t, rdb)})
		at := testclock.Start
		payload := []byte("\x00\xff\r\n{}")
		r := queuetest.Enqueue(t, q, queue.Task{Kind: "a/b:c", Queue: "q", Priority: 2, Payload: payload, Headers: map[string]string{"k": "v ü\n", "": "\x00"},
			Timeout: time.Hour, QueueTimeout: time.Minute, AttemptTimeout: time.Second, MaxRetries: 3, StartAt: at.Add(time.Second),
			Retention: 2 * time.Hour, IdempotencyKey: "key"})
		if want := (queue.Receipt{ID: r.ID, Deadline: at.Add(time.Hour), New: true}); r != want {
			t.Errorf("Receipt = %+v, want %+v", r, want)
		}
		got, err := q.Get(context.Background(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := &queue.Record{ID: r.ID, Kind: "a/b:c", Queue: "q", Status: queue.Pending, Priority: 2, Payload: payload,
			Headers: map[string]string{"k": "v ü\n", "": "\x00"}, IdempotencyKey: "key", CreatedAt: at, Deadline: at.Add(time.Hour),
			Until: at.Add(time.Hour), AvailableAt: at.Add(time.Second), LimitAt: at.Add(61 * time.Second), MaxRetries: 3, Fields: got.Fields}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Get =\n%+v, want\n%+v", got, want)
		}
		if got.Phase() != "Created" {
			t.Errorf("Phase = %s, want Created", got.Phase())
		}
	})
}

func TestCancelAllAnswersForEachTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx, w := context.Background(), &queuetest.Taker{Q: q, Worker: "w"}
		pending := []string{queuetest.Enqueue(t, q, queue.Task{Queue: "p"}).ID, queuetest.Enqueue(t, q, queue.Task{Queue: "p"}).ID}
		running := queuetest.Enqueue(t, q, queue.Task{Queue: "r"}).ID
		w.Take(t, running, "r")
		delayed := queuetest.Enqueue(t, q, queue.Task{Delay: time.Hour}).ID
		done, failed := queuetest.Enqueue(t, q, queue.Task{Queue: "d"}).ID, queuetest.Enqueue(t, q, queue.Task{Queue: "f"}).ID
		held := w.Take(t, done, "d")
		w.Settle(t, queue.Outcome{ID: done, Epoch: held.Epoch, Verb: queue.Complete, Result: []byte("result")})
		held = w.Take(t, failed, "f")
		w.Settle(t, queue.Outcome{ID: failed, Epoch: held.Epoch, Verb: queue.Fail, Error: "boom"})

		cancelled := queue.Cancellation{Done: true, Status: queue.Cancelled}
		list := []string{pending[1], done, running, unknown, delayed, failed, pending[0], pending[1]}
		want := []queue.Cancellation{cancelled, {Status: queue.Completed, Result: []byte("result")}, cancelled, {Err: refusal.ErrNotFound},
			cancelled, {Status: queue.Failed, Error: "boom"}, cancelled, cancelled} // pending[1] is in the list twice: both are reported as cancelled
		got, err := q.CancelAll(ctx, list, "no need")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("CancelAll =\n%+v, %v, want\n%+v", got, err, want)
		}
		again, err := q.Cancel(ctx, running, "another reason")
		if want := (queue.Cancellation{Status: queue.Cancelled, Error: "no need"}); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("Cancel again = %+v, %v, want %+v", again, err, want)
		}
		if stops, err := claim.Of(q).Heartbeat(ctx, queuetest.Partition(t, running), "w", time.Minute, 0, []claim.Held{{ID: running, Epoch: 1}}); err != nil ||
			!reflect.DeepEqual(stops, []claim.Stop{{ID: running, Epoch: 1, Reason: "cancelled"}}) {
			t.Errorf("Heartbeat = %v, %v, want a stop with reason cancelled", stops, err)
		}
		queuetest.Sound(t, q)
	})
}

func TestACancelledTaskSaysWhy(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for reason, want := range map[string]string{"": "Task cancelled", "no need": "no need"} {
			id := queuetest.Enqueue(t, q, queue.Task{}).ID
			if _, err := q.Cancel(context.Background(), id, reason); err != nil {
				t.Fatal(err)
			}
			r, err := q.Get(context.Background(), id)
			if err != nil || r.Status != queue.Cancelled || r.Error != want || r.Reason != "cancelled" {
				t.Errorf("Get = %+v, %v, want it CANCELLED with %q", r, err, want)
			}
			if _, err := r.Outcome(); !errors.Is(err, refusal.ErrCancelled) {
				t.Errorf("Outcome = %v, want ErrCancelled", err)
			}
		}
	})
}

func TestStatsCountOverAllPartitions(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		if stats, err := q.Stats(ctx); err != nil || !reflect.DeepEqual(stats, queue.Stats{}) {
			t.Errorf("Stats of nothing = %+v, %v", stats, err)
		}
		var ids []string
		for range 8 {
			ids = append(ids, queuetest.Enqueue(t, q, queue.Task{Queue: "a", Timeout: time.Hour, QueueTimeout: time.Minute}).ID)
		}
		queuetest.Enqueue(t, q, queue.Task{Queue: "b", Delay: time.Hour})
		w := &queuetest.Taker{Q: q, Worker: "w"}
		for i, o := range []queue.Outcome{{Verb: queue.Complete}, {Verb: queue.Fail}, {Verb: queue.Fail, Class: queue.ClassTimeout}} {
			claim := w.Take(t, ids[i], "a")
			o.ID, o.Epoch = claim.ID, claim.Epoch
			w.Settle(t, o)
		}
		w.Take(t, ids[3], "a")
		if _, err := q.Cancel(ctx, ids[7], ""); err != nil {
			t.Fatal(err)
		}
		// A worker counts once for each partition from which it has fetched.
		want := queue.Stats{Deadlines: 4, Limits: 3, Delayed: 1, Workers: int64(q.Partitions()), Retained: 4, NoDeadline: 1, Queues: []queue.QueueStats{
			{Queue: "a", Ready: 3, Running: 1, Dead: 3, Enqueued: 8, Completed: 1, Failed: 2, Cancelled: 1, TimedOut: 1},
			{Queue: "b", Enqueued: 1},
		}}
		if stats, err := q.Stats(ctx); err != nil || !reflect.DeepEqual(stats, want) {
			t.Errorf("Stats =\n%+v, %v, want\n%+v", stats, err, want)
		}
	})
}

func TestStatsTellTheLimitsOfAQueue(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		for _, rate := range []queue.Rate{{N: 10, Per: time.Second, Burst: 4}, {N: 8, Per: 1500 * time.Millisecond, Burst: 8}} {
			_, err := q.LimitRate(ctx, "a", rate)
			if _, also := q.LimitRunning(ctx, "a", 8); err != nil || also != nil {
				t.Fatal(err, also)
			}
			if _, err := q.LimitLength(ctx, "a", 16); err != nil {
				t.Fatal(err)
			}
			stats, err := q.Stats(ctx)
			if want := (queue.QueueStats{Queue: "a", MaxRunning: 8, MaxLength: 16, Rate: rate}); err != nil || len(stats.Queues) != 1 || stats.Queues[0] != want {
				t.Errorf("Stats = %+v, %v, want %+v", stats.Queues, err, want)
			}
		}
	})
}

// The owner is named first, and its children do not fit into one round trip with it.
func TestCancelAllOfALargeTreeCancelsEachTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		owner := queuetest.Enqueue(t, q, queue.Task{}).ID
		ids, tasks := []string{owner}, []queue.Task{}
		for i := range 600 {
			ids = append(ids, owner+"."+strconv.Itoa(i+1))
			tasks = append(tasks, queue.Task{Kind: "k", ID: ids[i+1], Promise: true})
		}
		if _, err := q.EnqueueAll(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		cancellations, err := q.CancelAll(t.Context(), ids, "enough")
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cancellations {
			if !c.Done {
				t.Fatalf("%s is not cancelled: %+v", ids[i], c)
			}
		}
	})
}
