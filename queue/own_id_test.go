package queue_test

import (
	"errors"
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A root task can have an id of the caller's own, and then a repeat of the call stores nothing.
func TestARootTaskWithAnIDIsStoredOnce(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		task := queue.Task{Kind: "k", ID: "0-ORDER1", Payload: []byte("p")}
		if r := queuetest.Enqueue(t, q, task); r != (queue.Receipt{ID: "0-ORDER1", New: true}) {
			t.Errorf("the first: %+v", r)
		}
		all, err := q.EnqueueAll(t.Context(), []queue.Task{task, {Kind: "k"}})
		if err != nil || all[0] != (queue.Receipt{ID: "0-ORDER1"}) || all[1].Err != nil || !all[1].New {
			t.Errorf("the second, beside another task: %+v, %v", all, err)
		}
		task.Payload = []byte("other")
		if _, err := q.Enqueue(t.Context(), task); !errors.Is(err, refusal.ErrConflict) {
			t.Errorf("with another payload: %v, want ErrConflict", err)
		}
	})
}

// A task with an id and an idempotency key is in the partition of both.
func TestAnIDAndAKeyBelongToOnePartition(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		home := int(crc32.ChecksumIEEE([]byte("key")) % uint32(q.Partitions()))
		if r := queuetest.Enqueue(t, q, queue.Task{ID: strconv.Itoa(home) + "-A", IdempotencyKey: "key"}); !r.New {
			t.Errorf("in the partition of its key: %+v", r)
		}
		if q.Partitions() == 1 {
			return
		}
		other := strconv.Itoa((home+1)%q.Partitions()) + "-B"
		if _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", ID: other, IdempotencyKey: "key"}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("in another partition: %v, want ErrInvalid", err)
		}
	})
}
