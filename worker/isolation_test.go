package worker_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// suspects makes tasks that two workers have lost. They are in line, in several partitions.
func (s *stage) suspects(n int) (ids []string) {
	s.Helper()
	of := map[int]int{}
	for range n {
		id := s.enqueue(queue.Task{Kind: "suspect"})
		partition, err := queue.PartitionOf(id)
		if err != nil {
			s.Fatal(err)
		}
		ids = append(ids, id)
		of[partition]++
	}
	for partition, n := range of {
		for round := range 2 {
			s.lose(partition, fmt.Sprint("dead", round), n)
		}
	}
	return ids
}

// lose lets a worker claim the n tasks of a partition, and die.
func (s *stage) lose(partition int, worker string, n int) {
	s.Helper()
	ask := queue.Ask{N: n, Seq: 1, Lease: time.Millisecond, Quotas: []queue.Quota{{Queue: "default", N: n}}}
	trip, err := s.q.Attempts().Fetch(s.ctx, partition, worker, ask)
	if err != nil || len(trip.Claims) != n {
		s.Fatalf("%d claims, %v, want %d", len(trip.Claims), err, n)
	}
	for lost := 0; lost < n; {
		swept, err := reaper.Sweep(s.ctx, s.q, partition, "test", 100, time.Second)
		if err != nil {
			s.Fatal(err)
		}
		lost += swept.GivenBack
	}
}

// A worker that holds many tasks of four partitions gets rid of them to run a suspect, and then goes on.
func TestATaskThatMayHaveKilledItsWorkersRunsAlone(t *testing.T) {
	s := newStage(t, shared(t), 4)
	w := worker.New(s.q, worker.Config{Concurrency: 6, Queues: map[string]int{"default": 1, "other": 1}})
	var running, plain, alone atomic.Int64
	beside := make(chan string, 100)
	worker.Handle(w, "suspect", func(ctx context.Context, _ []byte) ([]byte, error) {
		if alone.Add(1) > 1 {
			beside <- fmt.Sprintf("%s ran beside another suspect", worker.Info(ctx).ID)
		}
		defer alone.Add(-1)
		for range 100 {
			if n := running.Load(); n > 0 {
				beside <- fmt.Sprintf("%s ran beside %d plain tasks", worker.Info(ctx).ID, n)
				break
			}
			runtime.Gosched()
			time.Sleep(100 * time.Microsecond) // sleeps: lets others start, if they can
		}
		return nil, nil
	})
	worker.Handle(w, "plain", func(context.Context, []byte) ([]byte, error) {
		running.Add(1)
		defer running.Add(-1)
		time.Sleep(time.Millisecond) // sleeps: the worker is to hold several tasks at a time
		plain.Add(1)
		return nil, nil
	})
	ids := s.suspects(8)
	var tasks []queue.Task
	for range 600 {
		tasks = append(tasks, queue.Task{Kind: "plain", Queue: "other"})
	}
	others := s.enqueueAll(tasks...)
	s.run(w)
	for _, id := range ids {
		if r := s.ended(id); r.Status != queue.Completed || r.LeaseLosses != 2 {
			t.Errorf("%s is %s after %d lost leases, want COMPLETED after 2", id, r.Status, r.LeaseLosses)
		}
	}
	for _, id := range others {
		s.ended(id)
	}
	select {
	case what := <-beside:
		t.Error(what)
	default:
	}
}

// A handler that does not end must not keep the worker from the other tasks in line.
func TestAWorkerThatCannotGetRidOfItsTasksTakesOthers(t *testing.T) {
	worker.DrainFor(t, 20*time.Millisecond) // real time: the shorter, the sooner the test ends
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{Concurrency: 3})
	held, end := make(chan struct{}), make(chan struct{})
	worker.Handle(w, "holds", func(context.Context, []byte) ([]byte, error) {
		close(held)
		<-end
		return nil, nil
	})
	for _, kind := range []string{"suspect", "plain"} {
		worker.Handle(w, kind, func(context.Context, []byte) ([]byte, error) { return nil, nil })
	}
	s.suspects(2)
	holder := s.enqueue(queue.Task{Kind: "holds", Priority: 1}) // before the suspects
	s.run(w)
	<-held
	plain := s.enqueue(queue.Task{Kind: "plain"})
	s.ended(plain)
	close(end)
	s.ended(holder)
}
