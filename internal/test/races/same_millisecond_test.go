package races

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// Very many tasks have the same deadline, and some the next millisecond. They end in the order of their deadlines.
func TestSameMillisecond(t *testing.T) {
	redistest.NoRace(t, "it checks the order of the server")
	const after = 300
	crowd := harness.Times(3_000, 3_000, 100_000)
	s := newStage(t, redistest.Start(t).Addr, queue.Config{})
	deadline := s.gather(crowd, after)
	tail := s.tail(2 * after)
	ended, over := 0, make(chan struct{})
	s.Run(reaper.New(s.Another(), reaper.Config{Observe: func(_ int, did reaper.Swept) {
		before := ended
		if ended += did.TimedOut; before < crowd+after && ended >= crowd+after {
			close(over)
		}
	}}).Run)
	until(deadline)
	await.Receive(t, over, "all tasks have ended")
	s.checkOrder(await.Receive(t, tail, "the first events have arrived"), crowd, after)
}

// gather enqueues tasks with one deadline, and some with the next millisecond, and returns before
// the deadline.
func (s *stage) gather(crowd, after int) time.Time {
	s.Helper()
	start := time.Now()
	const sample = 2000
	s.Enqueue(ending(sample, time.Now().Add(time.Hour))...)
	each := time.Since(start) / sample
	for spare := 1; spare < 5; spare++ {
		if err := s.Redis.FlushDB(s.Context()).Err(); err != nil {
			s.Fatal(err)
		}
		s.Q = s.Another()
		wait := time.Duration(crowd+after) * each * time.Duration(spare)
		deadline := time.Now().Add(wait + time.Second).Truncate(time.Millisecond)
		if s.crowd(crowd, after, deadline) {
			return deadline
		}
		s.Logf("enqueuing took longer than the %v before the deadline", wait+time.Second)
	}
	s.Fatal("enqueuing always took longer than the time before the deadline")
	return time.Time{}
}

// crowd enqueues the tasks, and reports whether that was done before their deadline.
func (s *stage) crowd(crowd, after int, deadline time.Time) bool {
	s.Helper()
	tasks := append(ending(after, deadline.Add(time.Millisecond)), ending(crowd, deadline)...)
	receipts, err := s.Q.EnqueueAll(s.Context(), tasks)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range receipts {
		if errors.Is(r.Err, refusal.ErrInvalid) {
			return false
		}
		if r.Err != nil {
			s.Fatal(r.Err)
		}
	}
	return time.Now().Before(deadline)
}

// ending returns n tasks with the same deadline.
func ending(n int, deadline time.Time) []queue.Task {
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Deadline: deadline}
	}
	return tasks
}

// tail collects the first n events as they are written, because the stream keeps only about 100,000.
func (s *stage) tail(n int) <-chan []harness.Event {
	result := make(chan []harness.Event, 1)
	rdb, key := harness.Client(s.T, s.Addr), s.Q.EventsKey(0)
	go func() {
		var all []harness.Event
		for from := "0"; len(all) < n && s.Context().Err() == nil; {
			streams, err := rdb.XRead(s.Context(), &redis.XReadArgs{Streams: []string{key, from}, Count: 500, Block: time.Second}).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				break
			}
			for _, stream := range streams {
				for _, m := range stream.Messages {
					all, from = append(all, harness.ReadEvents(m)...), m.ID
				}
			}
		}
		result <- all
	}()
	return result
}

// checkOrder checks that the tasks ended in the order of their deadlines, each once. first overlaps
// with the events that the stream still has.
func (s *stage) checkOrder(first []harness.Event, crowd, after int) {
	s.Helper()
	rest := s.Events(s.Q)
	seen := make(map[string]bool, crowd+after)
	var last harness.Event
	var once sync.Once
	for _, e := range append(first, rest...) {
		if seen[e.ID] {
			continue // in both lists
		}
		seen[e.ID] = true
		if e.Kind != "task_timed_out" {
			s.Complain("%s has the event %s", e.ID, e.Kind)
		}
		if e.Deadline < last.Deadline || e.Deadline == last.Deadline && e.ID < last.ID {
			once.Do(func() {
				s.Errorf("%s with deadline %d ended after %s with deadline %d", e.ID, e.Deadline, last.ID, last.Deadline)
			})
		}
		last = e
	}
	if len(seen) != crowd+after {
		s.Errorf("%d tasks have an event, want %d", len(seen), crowd+after)
	}
	if len(rest) > crowd+after || len(rest) < crowd {
		s.Errorf("the stream has %d events of %d tasks", len(rest), crowd+after)
	}
	stats, err := s.Q.Stats(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if got := stats.Queues[0]; got.TimedOut != int64(crowd+after) || got.Ready != 0 {
		s.Errorf("the counters are %+v", got)
	}
}
