package events_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestRecentReturnsTheNewestEvents(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		if all, err := events.Recent(t.Context(), q, 5); err != nil || len(all) != 0 {
			t.Errorf("of nothing: %v, %v", all, err)
		}
		var ids []string
		for range 12 * q.Partitions() {
			ids = append(ids, queuetest.Enqueue(t, q, queue.Task{}).ID)
		}
		got, err := events.Recent(t.Context(), q, 5)
		if err != nil || len(got) != 5*q.Partitions() || !slices.IsSortedFunc(got, func(a, b events.Event) int { return a.At.Compare(b.At) }) {
			t.Errorf("%v, %v", got, err)
		}
		newest := map[int]string{}
		for _, id := range ids {
			newest[queuetest.Partition(t, id)] = id
		}
		for p, id := range newest {
			if !slices.ContainsFunc(got, func(e events.Event) bool { return e.TaskID == id && e.Kind == "task_enqueued" }) {
				t.Errorf("the newest event of partition %d is not there", p)
			}
		}
		for _, n := range []int{0, -1, 1001} {
			if _, err := events.Recent(t.Context(), q, n); !errors.Is(err, refusal.ErrInvalid) {
				t.Errorf("Recent(%d): %v", n, err)
			}
		}
	})
}
