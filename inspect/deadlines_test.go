package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Each deadline is in one part of the span, or overdue, or later.
func TestDeadlinesAreCountedOnce(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		d, err := inspect.Deadlines(t.Context(), q, 0, 3)
		if err != nil || d.Within != time.Minute || d.Sum() != 0 {
			t.Errorf("of nothing: %+v, %v", d, err)
		}
		for i := range 20 {
			queuetest.Enqueue(t, q, queue.Task{Timeout: 90*time.Second + time.Duration(i)*time.Millisecond})
		}
		queuetest.Enqueue(t, q, queue.Task{Timeout: 400 * 24 * time.Hour})
		queuetest.Enqueue(t, q, queue.Task{})
		for _, row := range []struct {
			within, want time.Duration
			buckets      int
			sum, later   int64
		}{
			{0, 5 * time.Minute, 5, 20, 1},
			{time.Hour, time.Hour, 1000, 20, 1},
			{time.Second, time.Second, 1, 0, 21},
			{2 * time.Millisecond, 2 * time.Millisecond, 1000, 0, 21},
			{10000 * time.Hour, 10000 * time.Hour, 7, 21, 0},
		} {
			d, err := inspect.Deadlines(t.Context(), q, row.within, row.buckets)
			if err != nil || d.Within != row.want || len(d.Buckets) != row.buckets || d.Sum() != row.sum || d.Later != row.later || d.Overdue != 0 {
				t.Errorf("Deadlines(%v, %d) = %+v, %v", row.within, row.buckets, d, err)
			}
		}
		list, more, err := inspect.DueTasks(t.Context(), q, time.Time{}, d.Now.Add(time.Hour), 100)
		if err != nil || more || len(list) != 20 || list[0].Kind != "k" || list[0].Queue != "default" || list[0].Status != queue.Pending ||
			!slices.IsSortedFunc(list, func(a, b inspect.Due) int { return a.Deadline.Compare(b.Deadline) }) {
			t.Errorf("DueTasks = %+v, %v, %v", list, more, err)
		}
		first, more, err := inspect.DueTasks(t.Context(), q, time.Time{}, d.Now.Add(time.Hour), 7)
		if err != nil || !more || !slices.Equal(first, list[:7]) {
			t.Errorf("the first 7: %+v, %v, %v", first, more, err)
		}
		after, _, err := inspect.DueTasks(t.Context(), q, list[4].Deadline, list[9].Deadline, 100)
		if err != nil || len(after) == 0 || !after[0].Deadline.After(list[4].Deadline) || after[len(after)-1].Deadline.After(list[9].Deadline) {
			t.Errorf("after the fifth: %+v, %v", after, err)
		}
		if _, err := q.Cancel(t.Context(), list[0].ID, ""); err != nil {
			t.Fatal(err)
		}
		if left, _, _ := inspect.DueTasks(t.Context(), q, time.Time{}, d.Now.Add(time.Hour), 100); len(left) != 19 {
			t.Errorf("after a cancel: %d", len(left))
		}
	})
}

func TestDueTasksOfManyPartitionsAreReadTogether(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: 50})
	for range 100 { // partitions take turns
		queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour})
	}
	alone := 0 // commands that are not in a pipeline
	for _, name := range []string{"hget", "zrangebyscore"} {
		rdb.AddHook(queuetest.Around{Name: name, Before: func() { alone++ }})
	}
	list, more, err := inspect.DueTasks(t.Context(), q, time.Time{}, time.Now().Add(2*time.Hour), 1000)
	if err != nil || more || len(list) != 100 {
		t.Errorf("%d tasks, more %v, %v", len(list), more, err)
	}
	if alone > 0 {
		t.Errorf("%d commands were sent alone", alone)
	}
}

// The longest span has parts that begin one after the other, and the last one ends with the span.
func TestTheLongestSpanHasParts(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for _, n := range []int{1, 7, 12, 1000} {
		d := inspect.DueCounts{Now: time.Unix(1_800_000_000, 0), Within: century, Buckets: make([]int64, n)}
		for i := range n {
			if length := d.From(i + 1).Sub(d.From(i)); length < century/time.Duration(n) || length > century/time.Duration(n)+1 {
				t.Fatalf("of %d parts, %d has a length of %v", n, i, length)
			}
		}
		if whole := d.From(n).Sub(d.Now); whole != century {
			t.Errorf("%d parts have a length of %v together", n, whole)
		}
	}
}

func TestBadArgumentsOfDeadlinesAndAgentsAreRefused(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := t.Context()
		for claim, call := range map[string]func() error{
			"no buckets":       func() error { _, err := inspect.Deadlines(ctx, q, time.Hour, 0); return err },
			"1,001 buckets":    func() error { _, err := inspect.Deadlines(ctx, q, time.Hour, 1001); return err },
			"a negative span":  func() error { _, err := inspect.Deadlines(ctx, q, -1, 5); return err },
			"a huge span":      func() error { _, err := inspect.Deadlines(ctx, q, 1<<63-1, 5); return err },
			"no tasks":         func() error { _, _, err := inspect.DueTasks(ctx, q, time.Time{}, time.Now(), 0); return err },
			"too many tasks":   func() error { _, _, err := inspect.DueTasks(ctx, q, time.Time{}, time.Now(), 100_001); return err },
			"no agents":        func() error { _, err := inspect.Agents(ctx, q, 0); return err },
			"too many entries": func() error { _, err := inspect.Agents(ctx, q, 100_001); return err },
		} {
			if err := call(); !errors.Is(err, refusal.ErrInvalid) {
				t.Errorf("%s: %v", claim, err)
			}
		}
		if _, err := inspect.Agents(ctx, q, 100_000); err != nil {
			t.Errorf("the greatest number of agents: %v", err)
		}
	})
}

// A record that cannot be read is listed without what it says, and a key of the wrong type is an error that says so.
func TestDueTasksOfRuinedRecords(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		rdb, root := q.Client(), q.Root(0)
		for i, text := range []string{"", "\x1b[2J", "one", "k q"} {
			rdb.Set(t.Context(), fmt.Sprint(root, ":spec:0-R", i), text, 0)
			rdb.ZAdd(t.Context(), root+":deadlines", redis.Z{Score: float64(i + 1), Member: fmt.Sprint("0-R", i)})
		}
		rdb.LPush(t.Context(), root+":state:0-R3", "x")
		rdb.ZAdd(t.Context(), root+":deadlines", redis.Z{Score: 9, Member: "not an id"}, redis.Z{Score: 10, Member: "999-X"})
		list, _, err := inspect.DueTasks(t.Context(), q, time.Time{}, time.Now(), 100)
		if err != nil || len(list) != 6 || list[3] != (inspect.Due{ID: "0-R3", Kind: "k", Queue: "q", Status: queue.Pending, Deadline: time.UnixMilli(4)}) || list[1].Kind != "" {
			t.Errorf("%+v, %v", list, err)
		}
		rdb.Del(t.Context(), root+":deadlines")
		rdb.Set(t.Context(), root+":deadlines", "x", 0)
		if _, err := inspect.Deadlines(t.Context(), q, time.Hour, 5); !errors.Is(err, refusal.ErrWrongType) {
			t.Errorf("Deadlines: %v", err)
		}
		if _, _, err := inspect.DueTasks(t.Context(), q, time.Time{}, time.Now(), 5); !errors.Is(err, refusal.ErrWrongType) {
			t.Errorf("DueTasks: %v", err)
		}
		if _, err := inspect.Agents(t.Context(), q, 5); !errors.Is(err, refusal.ErrWrongType) {
			t.Errorf("Agents: %v", err)
		}
	})
}
