package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Up to 2,000 tasks a second pass a link that stops for 200 ms every 700 ms. Each task runs once and ends once.
func TestALinkThatStallsNowAndThen(t *testing.T) {
	const rate, stall, every = 2000, 200 * time.Millisecond, 700 * time.Millisecond
	server := redistest.Start(t)
	link := faultproxy.Start(t, server.Addr)
	s := newStage(t, link.Addr, server.Addr)
	var mu sync.Mutex
	runs := map[string]int{}
	for range 2 {
		w := worker.New(s.Another(), worker.Config{Concurrency: 50})
		s.work(w, map[string]worker.Handler{"k": func(ctx context.Context, _ []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[worker.Info(ctx).ID]++
			return nil, nil
		}})
	}
	span := time.Duration(harness.Times(2, 3, 20)) * time.Second
	over := time.Now().Add(span)
	stalls := 0
	stopStalls := s.Run(func(ctx context.Context) error {
		for stalls < 2 || time.Now().Before(over) && ctx.Err() == nil {
			harness.Pass(every) // sleeps: between two stalls
			link.Hold(func([][]byte) bool { return true })
			harness.Pass(stall) // sleeps: a stall
			link.Release()
			stalls++
		}
		return nil
	})
	s.steady(rate, over)
	s.drained()
	stopStalls()
	s.untroubled()
	here := s.account(nothing)
	mu.Lock()
	defer mu.Unlock()
	for id := range here.fates {
		if runs[id] != 1 {
			s.Complain("%s ran %d times, want 1: every lease is much longer than a stall", id, runs[id])
		}
	}
	t.Logf("%d tasks, %d stalls", len(here.fates), stalls)
	if stalls < 2 || len(here.fates) < 500 {
		t.Errorf("%d stalls and %d tasks are too few for this test", stalls, len(here.fates))
	}
}

// steady enqueues tasks at a rate through the link, until an instant. After a stall it enqueues
// those that the stall delayed.
func (s *stage) steady(rate int, over time.Time) {
	s.Helper()
	const beat = 25 * time.Millisecond
	q := s.Another()
	var group sync.WaitGroup
	room := make(chan struct{}, 8)
	for next := time.Now(); next.Before(over); next = next.Add(beat) {
		harness.Pass(time.Until(next)) // sleeps: the rate
		tasks := make([]queue.Task, rate*int(beat)/int(time.Second))
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Payload: fmt.Append(nil, i), Timeout: time.Minute}
		}
		room <- struct{}{}
		group.Go(func() { s.hand(q, tasks); <-room })
	}
	group.Wait()
}
