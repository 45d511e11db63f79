package faults

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

const step = time.Hour

// idler runs an idle worker that sends the id of each task that it runs to ran.
func (s *stage) idler(lease time.Duration) (ran chan string) {
	s.Helper()
	ran = make(chan string, 1000)
	w := worker.New(s.Another(), worker.Config{Queues: map[string]int{"idle": 1}, Lease: lease, NoReaper: true})
	s.work(w, map[string]worker.Handler{"k": func(ctx context.Context, _ []byte) ([]byte, error) {
		ran <- worker.Info(ctx).ID
		return nil, nil
	}})
	id := s.Enqueue(queue.Task{Kind: "k", Queue: "idle"})[0]
	for got := ""; got != id; got = await.Receive(s.T, ran, "the idle worker runs its first task") {
	}
	return ran
}

// starts checks that the idle worker begins a new task.
func (s *stage) starts(ran chan string) {
	s.Helper()
	id := s.Enqueue(queue.Task{Kind: "k", Queue: "idle"})[0]
	if got := await.Receive(s.T, ran, "an idle worker takes a task"); got != id {
		s.Errorf("%s ran, want %s", got, id)
	}
}

// endsLate checks that a timeout is detected, and not by the length of a step too late.
func (s *stage) endsLate() {
	s.Helper()
	id := s.Enqueue(queue.Task{Kind: "late", Queue: "nobody", Timeout: 300 * time.Millisecond})[0]
	if r := s.Ended(id); !r.TimedOut || r.DetectedAt.Sub(r.CompletedAt) > step/2 {
		s.Errorf("the timeout was detected %v late; the task is %s", r.DetectedAt.Sub(r.CompletedAt), r.Status)
	}
}

// After a step forward everything is due that falls due within the step, and nothing happens twice.
func TestTheClockStepsForward(t *testing.T) {
	server, clock := withClock(t)
	s := newStage(t, server.Addr, server.Addr)
	s.Reap(reaper.Config{})
	ran := s.idler(15 * time.Second)
	stopFleet := s.fleet(1, 15*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	within := s.Enqueue(queue.Task{Kind: "k", Queue: "nobody", Timeout: step / 2}, queue.Task{Kind: "k", Queue: "nobody", QueueTimeout: step / 2})
	beyond := s.Enqueue(queue.Task{Kind: "k", Queue: "idle", Timeout: 2 * step, Delay: 3 * step / 2})
	delayed := s.Enqueue(queue.Task{Kind: "k", Queue: "idle", Timeout: 2 * step, Delay: step / 2})
	harness.Pass(300 * time.Millisecond) // sleeps: the load
	clock.step(step)
	for _, id := range within {
		if r := s.Ended(id); !r.TimedOut {
			t.Errorf("a task with a deadline within the step is %s, want it timed out", r.Status)
		}
	}
	if r := s.Ended(delayed[0]); r.Status != queue.Completed {
		t.Errorf("a task with a start within the step is %s: %s, want COMPLETED", r.Status, r.Error)
	}
	if got := await.Receive(t, ran, "the task with a start within the step runs"); got != delayed[0] {
		t.Errorf("%s ran, want %s", got, delayed[0])
	}
	if r := s.Record(beyond[0]); r.Status != queue.Pending {
		t.Errorf("a task with a start after the step is %s, want PENDING", r.Status)
	}
	s.starts(ran)
	s.endsLate()
	harness.Pass(300 * time.Millisecond) // sleeps: the load
	stopProducer()
	s.callOff(s.Q, beyond[0])
	s.drained()
	stopClerk()
	stats := stopFleet()
	s.untroubled()
	s.account(nothing)
	t.Logf("%d tasks; the fleet: %+v", len(s.Ledger.Copy().Tasks), stats)
}

// After a step back, instants from before it are late by the step, and nothing else changes. New tasks
// end on time, no turn and no alarm is blocked, and an idle worker, whose blocking call Redis extends by
// the step, still polls.
func TestTheClockStepsBack(t *testing.T) {
	server, clock := withClock(t)
	clock.step(step)
	s := newStage(t, server.Addr, server.Addr)
	s.oneReaper = true
	gone := s.Reap(reaper.Config{})
	ran := s.idler(time.Second)
	stopFleet := s.fleet(1, 15*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	s.endsLate()
	await.Until(t, "the idle worker waits in Redis", s.waits)
	old := s.Enqueue(queue.Task{Kind: "k", Queue: "nobody", Timeout: time.Second})[0]
	gone() // the reaper that has the turn ends; its turn is an hour ahead
	clock.step(0)
	s.hasTurn()
	s.endsLate()
	for range 5 {
		s.starts(ran)
	}
	harness.Pass(1500 * time.Millisecond) // sleeps: longer than the old deadline, and than the idle worker's lease
	s.endsLate()
	s.starts(ran)
	if r := s.Record(old); r.Status != queue.Pending {
		t.Errorf("a task with a deadline from before the step is %s, want PENDING: it is late by the step", r.Status)
	}
	stopProducer()
	clock.step(step) // as if an hour had passed
	if r := s.Ended(old); !r.TimedOut {
		t.Errorf("a task with a deadline from before the step is %s after the step forward, want it timed out", r.Status)
	}
	s.drained()
	stopClerk()
	stats := stopFleet()
	s.untroubled()
	s.account(nothing)
	t.Logf("%d tasks; the fleet: %+v", len(s.Ledger.Copy().Tasks), stats)
}

// hasTurn runs a reaper, and waits until it has the turn.
func (s *stage) hasTurn() {
	s.Helper()
	turn := make(chan struct{})
	has := sync.OnceFunc(func() { close(turn) })
	s.Run(reaper.New(s.Another(), reaper.Config{Observe: func(_ int, swept reaper.Swept) {
		if swept.Turn {
			has()
		}
	}}).Run)
	await.Receive(s.T, turn, "a reaper has the turn")
}

// waits reports whether a client waits in a blocking call.
func (s *stage) waits() bool {
	return !strings.Contains(s.Redis.Info(s.Context(), "clients").Val(), "blocked_clients:0")
}
