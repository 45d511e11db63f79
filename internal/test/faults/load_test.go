package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// produce enqueues until ctx ends: at each interval a list of tasks for every clock. It records in
// the ledger which are acknowledged.
func (s *stage) produce(ctx context.Context, every time.Duration) error {
	q := s.Another()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		soon := time.Duration(50+rand.IntN(250)) * time.Millisecond
		tasks := []queue.Task{
			{Kind: "owner", Queue: "nobody", Timeout: soon},
			{Kind: "unwanted", Queue: "nobody"},
			{Kind: "late", Queue: "nobody", QueueTimeout: soon},
			{Kind: "noted", Queue: "clerk"},
			{Kind: "fails", MaxRetries: 1, Timeout: time.Minute},
			{Kind: "quick", Delay: soon},
		}
		for range 6 {
			tasks = append(tasks, queue.Task{Kind: "quick", Payload: fmt.Append(nil, n), Timeout: time.Minute})
		}
		receipts := s.hand(q, tasks)
		s.hand(q, []queue.Task{{Kind: "child", Queue: "nobody", ID: receipts[0].ID + ".1"}, {Kind: "child", Queue: "nobody", ID: receipts[0].ID + ".2"}})
		if receipts[1].Err == nil {
			s.callOff(q, receipts[1].ID)
		}
	}
}

// hand enqueues tasks, and records the result of each in the ledger.
func (s *stage) hand(q *queue.Queue, tasks []queue.Task) []queue.Receipt {
	kept(tasks)
	receipts, err := q.EnqueueAll(s.Context(), tasks)
	for _, r := range receipts {
		switch {
		case r.Err == nil:
			s.Ledger.Acknowledge(r.ID)
		case errors.Is(r.Err, refusal.ErrOwnerEnded), errors.Is(r.Err, refusal.ErrNotFound): // the owner ended first, or is lost
		case errors.Is(r.Err, refusal.ErrUnknown):
			s.Ledger.Doubt(r.ID)
		default:
			s.Ledger.Refuse(r.ID)
		}
	}
	if err != nil {
		s.Ledger.Complain(err)
	}
	return receipts
}

// kept sets a retention that is longer than the test and the steps of its clock.
func kept(tasks []queue.Task) {
	for i := range tasks {
		tasks[i].Retention = 24 * time.Hour
	}
}

// unwanted is the reason of every cancellation.
const unwanted = "unwanted"

func (s *stage) callOff(q *queue.Queue, id string) {
	switch c, err := q.Cancel(s.Context(), id, unwanted); {
	case errors.Is(err, refusal.ErrNotFound): // the task is lost, which account reports
	case err != nil:
		s.Ledger.Complain(err)
	case c.Done:
		s.Ledger.Tell(id, harness.End{Status: queue.Cancelled, Note: unwanted})
	}
}

// fleet runs n workers. stop ends them and returns the sum of their counts.
func (s *stage) fleet(n int, lease time.Duration) (stop func() worker.Stats) {
	s.Helper()
	var workers []*worker.Worker
	var stops []func()
	for range n {
		w := worker.New(s.Another(), worker.Config{Concurrency: 20, Lease: lease, NoReaper: s.oneReaper})
		workers = append(workers, w)
		stops = append(stops, s.work(w, map[string]worker.Handler{
			"quick": func(_ context.Context, payload []byte) ([]byte, error) {
				harness.Pass(time.Duration(rand.IntN(10)) * time.Millisecond) // sleeps: the work
				return payload, nil
			},
			"fails": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("failed on purpose") },
		}))
	}
	return func() (sum worker.Stats) {
		for _, stop := range stops {
			stop()
		}
		for _, w := range workers {
			c := w.Stats()
			sum.Completed += c.Completed
			sum.Failed += c.Failed
			sum.Refused += c.Refused
			sum.Dropped += c.Dropped
			sum.Released += c.Released
		}
		return sum
	}
}

// clerk fetches and completes the tasks of its queue without a worker.Worker, with a different result
// for each claim. It records each acknowledged completion in the ledger.
func (s *stage) clerk(ctx context.Context) error {
	q, name := s.Another(), "clerk"
	for seq := int64(1); ctx.Err() == nil; seq++ {
		trip, err := claim.Of(q).Fetch(s.Context(), 0, name, claim.Ask{N: 5, Seq: seq, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "clerk", N: 5}}})
		if err != nil {
			s.Ledger.Complain(err)
			continue
		}
		outcomes := make([]queue.Outcome, len(trip.Claims))
		for i, c := range trip.Claims {
			outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: fmt.Append(nil, c.ID, " in ", seq)}
		}
		if len(outcomes) > 0 {
			done, err := claim.Of(q).Settle(s.Context(), 0, name, queue.NewCall(), outcomes, claim.Ask{})
			if err != nil {
				s.Ledger.Complain(err)
			}
			for i, v := range done.Verdicts {
				if v.Accepted() {
					s.Ledger.Tell(outcomes[i].ID, harness.End{Status: queue.Completed, Note: string(outcomes[i].Result)})
				}
			}
		}
		// It holds no task now, so the server can give back those whose reply was lost.
		if _, err := claim.Of(q).Heartbeat(s.Context(), 0, name, time.Minute, seq, nil); err != nil {
			s.Ledger.Complain(err)
		}
		harness.Pass(2 * time.Millisecond) // sleeps: a clerk is not notified of tasks
	}
	_, err := claim.Of(q).Heartbeat(s.Context(), 0, name, 0, 1<<40, nil)
	return err
}

// drained waits until all tasks have ended.
func (s *stage) drained() {
	s.Helper()
	var stats queue.Stats
	defer func() {
		if s.Failed() {
			s.Logf("not all tasks have ended: %+v", stats)
		}
	}()
	await.Until(s.T, "all have ended", func() bool {
		var err error
		stats, err = s.Q.Stats(s.Context())
		left := stats.Deadlines + stats.Limits + stats.Delayed + stats.Draining
		for _, each := range stats.Queues {
			left += each.Ready + each.Running
		}
		return err == nil && left == 0
	})
}
