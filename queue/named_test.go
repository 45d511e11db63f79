package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Every call that takes an id takes that of a name, which follows from the name alone.
func TestATaskIsReachedByItsName(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		for _, name := range []string{"order-17", "orders/17", "Ω 17", strings.Repeat(".", 128)} {
			id := queuetest.Enqueue(t, q, queue.Task{Name: name, Payload: []byte("p")}).ID
			if id != q.IDOf(name) || queue.NameOf(id) != name {
				t.Errorf("the task %q has the id %s, and IDOf = %s, NameOf = %q", name, id, q.IDOf(name), queue.NameOf(id))
			}
			if r, err := q.Get(ctx, q.IDOf(name)); err != nil || string(r.Payload) != "p" {
				t.Errorf("Get of %q = %+v, %v", name, r, err)
			}
			if r, err := q.Signal(ctx, q.IDOf(name), "go", []byte("x")); err != nil || !r.Done {
				t.Errorf("Signal to %q = %+v, %v", name, r, err)
			}
			if c, err := q.Cancel(ctx, q.IDOf(name), "why"); err != nil || !c.Done {
				t.Errorf("Cancel of %q = %+v, %v", name, c, err)
			}
			if _, err := q.Result(ctx, q.IDOf(name)); !errors.Is(err, refusal.ErrCancelled) {
				t.Errorf("Result of %q = %v, want it cancelled", name, err)
			}
		}
		queuetest.Enqueue(t, q, queue.Task{Name: "approval-17", Promise: true})
		if r, err := q.Resolve(ctx, q.IDOf("approval-17"), []byte("yes")); err != nil || !r.Done {
			t.Errorf("Resolve = %+v, %v", r, err)
		}
		if result, err := q.Result(ctx, q.IDOf("approval-17")); string(result) != "yes" {
			t.Errorf("Result = %q, %v", result, err)
		}
		queuetest.Sound(t, q)
	})
}

func TestANameThatNoTaskCanHaveHasNoID(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	for _, name := range []string{"", strings.Repeat("x", 129)} {
		if id := q.IDOf(name); id != "" {
			t.Errorf("IDOf of %d bytes = %q", len(name), id)
		}
		if _, err := q.Get(context.Background(), q.IDOf(name)); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("Get of its id = %v, want ErrInvalid", err)
		}
	}
}

func TestASecondTaskOfANameIsARepeat(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx, task := context.Background(), queue.Task{Kind: "k", Name: "order-17", Payload: []byte("p"), Timeout: time.Hour}
		first := queuetest.Enqueue(t, q, task)
		task.Timeout = time.Minute // settings of a repeat are ignored
		again := queuetest.Enqueue(t, q, task)
		if !first.New || again.New || again.ID != first.ID || !again.Deadline.Equal(first.Deadline) {
			t.Errorf("the receipts are %+v and %+v, want the second to repeat the first", first, again)
		}
		for claim, other := range map[string]queue.Task{
			"kind":    {Kind: "other", Name: "order-17", Payload: []byte("p")},
			"queue":   {Kind: "k", Queue: "other", Name: "order-17", Payload: []byte("p")},
			"payload": {Kind: "k", Name: "order-17", Payload: []byte("q")},
		} {
			_, err := q.Enqueue(ctx, other)
			if !errors.Is(err, refusal.ErrConflict) || !strings.Contains(err.Error(), `the task with the name "order-17" has another kind, queue or payload`) {
				t.Errorf("with another %s: %v, want a conflict that names the task", claim, err)
			}
		}
		if stats, err := q.Stats(ctx); err != nil || len(stats.Queues) != 1 || stats.Queues[0].Ready != 1 {
			t.Errorf("the queues are %+v, %v, want one task", stats, err)
		}
	})
}

// Of the tasks of one name in a list, and of concurrent calls that share a trip, one is new.
func TestOneOfManyTasksOfANameIsNew(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		receipts, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "k", Name: "a"}, {Kind: "k"}, {Kind: "k", Name: "a"}, {Kind: "other", Name: "a"}, {Kind: "k", Name: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, false, false, true} {
			if receipts[i].New != want || (receipts[i].Err != nil) != (i == 3) {
				t.Errorf("receipt %d = %+v, want New %v", i, receipts[i], want)
			}
		}
		var news atomic.Int64
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				r, err := q.Enqueue(ctx, queue.Task{Kind: "k", Name: "c"})
				if err != nil || r.ID != q.IDOf("c") {
					t.Errorf("%+v, %v", r, err)
				}
				if r.New {
					news.Add(1)
				}
			})
		}
		group.Wait()
		if news.Load() != 1 {
			t.Errorf("%d of 64 tasks were new, want 1", news.Load())
		}
	})
}

// An ended task keeps its name until its record is removed. Then a further task is new.
func TestANameIsFreeWhenItsRecordIsRemoved(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		c := curfewtest.New(t, curfewtest.Config{Client: rdb})
		runs := 0
		c.Worker.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { runs++; return []byte{'0' + byte(runs)}, nil })
		task := queue.Task{Kind: "k", Name: "order-17", Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "k", Queue: "hooks"}}}
		run := func(isNew bool, result string) {
			t.Helper()
			r := c.Enqueue(task)
			c.Drain()
			if got := string(c.MustComplete(r.ID)); r.New != isNew || got != result {
				t.Errorf("New is %v and the result %q, want %v and %q", r.New, got, isNew, result)
			}
		}
		run(true, "1") // its hook is 2
		run(false, "1")
		c.Advance(14 * time.Minute)
		run(false, "1")
		c.Advance(2 * time.Minute)
		run(true, "3")
		if runs != 4 {
			t.Errorf("%d tasks ran, want two and their hooks", runs)
		}
	})
}
