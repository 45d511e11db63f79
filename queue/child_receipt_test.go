package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A receipt tells a child that was made from one that was there, also when that has ended.
func TestAReceiptTellsAChildThatWasMadeFromOneThatWasThere(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		owner := queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
		child := queue.Task{Kind: "k", ID: owner + ".page-1", Payload: []byte("p"), Timeout: time.Minute}
		other := queue.Task{Kind: "k", ID: owner + ".page-2", Payload: []byte("p"), Timeout: time.Minute}
		enqueue := func(tasks ...queue.Task) (told []bool) {
			receipts, err := q.EnqueueAll(t.Context(), tasks)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range receipts {
				if r.Err != nil || r.ID != tasks[i].ID || r.Deadline.IsZero() {
					t.Fatalf("the receipt is %+v, want one of %s with its deadline", r, tasks[i].ID)
				}
				told = append(told, r.New)
			}
			return told
		}
		check := func(claim string, got []bool, want ...bool) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: New is %v, want %v", claim, got, want)
			}
		}
		check("one that is made", enqueue(child), true)
		check("one that is there", enqueue(child), false)
		child.Timeout = time.Hour // the first call's holds
		check("one that is there, beside one that is made", enqueue(child, other), false, true)
		if _, err := q.Cancel(t.Context(), child.ID, ""); err != nil {
			t.Fatal(err)
		}
		check("one that has ended", enqueue(child), false)
		r, err := q.Enqueue(t.Context(), child)
		if err != nil || r.New {
			t.Errorf("one alone that has ended: %+v, %v, want New to be false", r, err)
		}
	})
}

// The answer to a call that made a child is lost: its repeat is answered as the first time.
func TestAReceiptOfARepeatedCallIsThatOfTheFirst(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	proxy := faultproxy.Start(t, rdb.Options().Addr)
	q := queuetest.Open(t, redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: 100 * time.Millisecond}), queue.Config{})
	owner := queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
	lost := proxy.CutReply(faultproxy.Script(q.Engine().Library().Handle("enqueue")), 1)
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", ID: owner + ".1"})
	lost.Await(t)
	if err != nil || !r.New {
		t.Fatalf("the repeat is answered %+v, %v, want New", r, err)
	}
}
