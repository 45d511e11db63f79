package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// New is true for a child that the call created, and false for one that existed, even if it has ended.
func TestAReceiptSaysWhetherTheChildIsNew(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		owner := queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
		child := queue.Task{Kind: "k", ID: owner + ".page-1", Payload: []byte("p"), Timeout: time.Minute}
		other := queue.Task{Kind: "k", ID: owner + ".page-2", Payload: []byte("p"), Timeout: time.Minute}
		enqueue := func(tasks ...queue.Task) (isNew []bool) {
			receipts, err := q.EnqueueAll(t.Context(), tasks)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range receipts {
				if r.Err != nil || r.ID != tasks[i].ID || r.Deadline.IsZero() {
					t.Fatalf("the receipt is %+v, want one of %s with its deadline", r, tasks[i].ID)
				}
				isNew = append(isNew, r.New)
			}
			return isNew
		}
		check := func(claim string, got []bool, want ...bool) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: New is %v, want %v", claim, got, want)
			}
		}
		check("a new child", enqueue(child), true)
		check("a child that exists", enqueue(child), false)
		child.Timeout = time.Hour // the timeout of the first call counts
		check("a child that exists and a new one", enqueue(child, other), false, true)
		if _, err := q.Cancel(t.Context(), child.ID, ""); err != nil {
			t.Fatal(err)
		}
		check("a child that has ended", enqueue(child), false)
		r, err := q.Enqueue(t.Context(), child)
		if err != nil || r.New {
			t.Errorf("Enqueue of a child that has ended = %+v, %v, want New to be false", r, err)
		}
	})
}

// If the reply to a call that created a child is lost, the repeat of the call reports the child as new.
func TestARepeatedCallReturnsTheReceiptOfTheFirst(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	proxy := faultproxy.Start(t, rdb.Options().Addr)
	q := queuetest.Open(t, redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: 100 * time.Millisecond}), queue.Config{})
	owner := queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
	lost := proxy.CutReply(faultproxy.Script(q.Engine().Library().Handle("enqueue")), 1)
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", ID: owner + ".1"})
	lost.Await(t)
	if err != nil || !r.New {
		t.Fatalf("the repeat = %+v, %v, want New to be true", r, err)
	}
}
