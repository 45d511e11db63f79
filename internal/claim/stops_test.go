package claim_test

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestStopsReportsWhatMustStop(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Partitions: 2})
	w := &queuetest.Taker{Q: q, Worker: "w"}
	stops, again := make(chan claim.Stop, 10), make(chan struct{}, 10)
	end := claim.Of(q).Stops("w", func(s claim.Stop) { stops <- s }, func() { again <- struct{}{} })
	await.Receive(t, again, "again is called when the subscription begins")
	var held queue.Claim
	for range 4 { // in both partitions
		id := queuetest.Enqueue(t, q, queue.Task{CancelGrace: time.Minute}).ID
		held = w.Take(t, id, "default")
		if _, err := q.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		if got, want := await.Receive(t, stops, "the stop of "+id), (claim.Stop{ID: id, Epoch: held.Epoch, Reason: "cancelling"}); got != want || got.OfWorker() {
			t.Errorf("stop is called with %+v, want %+v", got, want)
		}
	}
	if err := q.StopWorker(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if s := await.Receive(t, stops, "the stop of the worker"); !s.OfWorker() {
		t.Errorf("stop is called with %+v, want the worker's", s)
	}

	if killed, err := rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result(); err != nil || killed != 1 {
		t.Fatalf("CLIENT KILL = %d, %v, want the one subscription", killed, err)
	}
	await.Receive(t, again, "again is called after the connection broke")

	end()
	if n := queuetest.Subscriptions(t, q); n != 0 {
		t.Errorf("%d subscriptions are left after the end", n)
	}
}
