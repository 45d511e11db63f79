package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestDeleteAllAnswersForEachTask(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2, Library: testclock.Library(t, rdb)})
		advance := func(d time.Duration) {
			for p := range 2 {
				testclock.Set(t, rdb, q.Root(p), testclock.Start.Add(d))
			}
		}
		advance(0)
		ended := func() string {
			id := queuetest.Enqueue(t, q, queue.Task{Payload: []byte(large)}).ID
			if _, err := q.Cancel(ctx, id, ""); err != nil {
				t.Fatal(err)
			}
			return id
		}
		old := []string{ended(), ended(), ended()}
		pending := queuetest.Enqueue(t, q, queue.Task{Queue: "p"}).ID
		owner := queuetest.Enqueue(t, q, queue.Task{Queue: "o"}).ID
		child := queuetest.Enqueue(t, q, queue.Task{ID: owner + ".child"}).ID
		if _, err := q.Cancel(ctx, child, ""); err != nil {
			t.Fatal(err)
		}
		advance(time.Minute)
		fresh := ended()
		list := []string{old[0], pending, fresh, child, "0-nobody", old[1], owner}
		got, err := q.DeleteAll(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			is  error
			say string
		}{
			{}, {refusal.ErrNotEnded, "the task has not ended: it is PENDING; cancel it, or wait until it has ended"}, {},
			{refusal.ErrNeeded, "the record is still needed: its owner " + owner + " has not ended and can read it; delete it when the owner has ended"},
			{refusal.ErrNotFound, "no such task"}, {}, {refusal.ErrNotEnded, "it is PENDING"},
		} {
			if err := got[i].Err; !errors.Is(err, want.is) || err != nil && !strings.Contains(err.Error(), want.say) {
				t.Errorf("deletion %d of %s = %v, want %v: %s", i, list[i], err, want.is, want.say)
			}
		}
		if at := got[2].RemovedAt; !at.Equal(testclock.Start.Add(2 * time.Minute)) {
			t.Errorf("the task that has just ended is removed at %v, want a minute after its end", at)
		}
		if deleted, err := q.Delete(ctx, old[2]); err != nil || deleted != (queue.Deletion{}) {
			t.Errorf("Delete = %+v, %v, want the record removed", deleted, err)
		}
		if _, err := q.Delete(ctx, old[2]); !errors.Is(err, refusal.ErrNotFound) || err.Error() != "delete "+old[2]+": no such task" {
			t.Errorf("the second Delete = %v, want ErrNotFound", err)
		}
		if records, err := q.GetAll(ctx, old); err != nil || slices.ContainsFunc(records, func(r *queue.Record) bool { return r != nil }) {
			t.Errorf("the deleted records are %v, %v, want none", records, err)
		}
		for p := range 2 {
			rdb.Del(ctx, q.Root(p)+":clock") // the audit does not know this key
		}
		queuetest.Sound(t, q)
	})
}

// A call frees about 16 MiB, so a list of large records is deleted in several calls.
func TestLargeRecordsAreDeletedInSeveralCalls(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Library: testclock.Library(t, rdb)})
		testclock.Set(t, rdb, q.Root(0), testclock.Start)
		var ids []string
		payload := make([]byte, 1<<20)
		for range 40 {
			ids = append(ids, queuetest.Enqueue(t, q, queue.Task{Payload: payload}).ID)
		}
		if _, err := q.CancelAll(ctx, ids, ""); err != nil {
			t.Fatal(err)
		}
		testclock.Set(t, rdb, q.Root(0), testclock.Start.Add(time.Hour))
		calls := 0
		rdb.AddHook(queuetest.Around{Before: func() { calls++ }})
		got, err := q.DeleteAll(ctx, ids)
		if i := slices.IndexFunc(got, func(d queue.Deletion) bool { return d != (queue.Deletion{}) }); err != nil || i >= 0 {
			t.Errorf("DeleteAll = %v, %v, want all deleted", got, err)
		}
		if calls < 3 {
			t.Errorf("40 MiB were deleted in %d calls, want 3", calls)
		}
	})
}
