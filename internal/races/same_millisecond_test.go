package races

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// Other programs only make the waits of another client longer, so the best of three rounds counts.
// A second round runs only if the first was too slow.
func TestSameMillisecond(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	crowd, after := 100_000, 1000
	if testing.Short() {
		crowd = 20_000
	}
	quick := false
	for round := 0; round < 3 && !quick && !t.Failed(); round++ {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) { quick = sameMillisecond(t, crowd, after) })
		crowd = 20_000
	}
	if !quick {
		t.Error("in no round was the p99 of another client's GETs below the limit while tasks were ended")
	}
}

// sameMillisecond ends many tasks with one deadline, and some of the next millisecond. It reports
// whether the commands of another client were quick enough meanwhile.
func sameMillisecond(t *testing.T, crowd, after int) bool {
	server := redistest.Start(t, "--slowlog-log-slower-than", "1000", "--slowlog-max-len", "5000")
	s := newStage(t, server.Addr, queue.Config{})
	deadline := s.gather(crowd, after)

	// Another client sends GETs, first while no task is due, and then while all are.
	bystander := stages.Client(t, s.Addr)
	if err := bystander.Set(s.Context(), "bystander", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	tail := s.tail(2 * after)
	ended, over := 0, make(chan struct{})
	s.Reap(reaper.Config{Observe: func(_ int, did reaper.Swept) {
		before := ended
		if ended += did.TimedOut; before < crowd+after && ended >= crowd+after {
			close(over)
		}
	}})
	before := s.watch(bystander, at(deadline))
	during := s.watch(bystander, over)
	took := time.Since(deadline)

	p99, calmP99 := during.at(0.99), before.at(0.99)
	slowest := s.slowestSweep()
	// On a busy machine all times grow alike, so the limit grows with the time for each task.
	limit, each := 10*time.Millisecond, took/time.Duration(crowd+after)
	if usual := 25 * time.Microsecond; each > usual {
		limit = limit * each / usual
	}
	// So does a single script: other programs interrupt it.
	limit = redistest.Paced(t, bystander, limit)
	t.Logf("%d deadlines in one ms and %d in the next: drained in %v, %.0f/s", crowd, after, took, float64(crowd+after)/took.Seconds())
	t.Logf("GETs of another client meanwhile: %d, median %v, p99 %v (limit %v), max %v; before: p99 %v; slowest sweep: %v",
		len(during), during.at(0.5), p99, limit, during.at(1), calmP99, slowest)
	if most := redistest.Paced(t, bystander, 15*time.Second); took > most {
		t.Errorf("ending all tasks took %v, want at most %v (4s on an idle machine)", took, most)
	}
	s.checkOrder(await.Receive(t, tail, "the first events have arrived"), crowd, after)
	return p99 <= limit
}

// watch sends GETs until stop is closed, and returns how long each took.
func (s *stage) watch(rdb *redis.Client, stop <-chan struct{}) (took spans) {
	s.Helper()
	for begun := time.Now(); ; {
		select {
		case <-stop:
			return took
		default:
		}
		if time.Since(begun) > await.Patience {
			s.Fatal("the tasks have not ended in time")
		}
		start := time.Now()
		if err := rdb.Get(s.Context(), "bystander").Err(); err != nil {
			s.Error(err)
			return took
		}
		took = append(took, time.Since(start))
	}
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
func (s *stage) tail(n int) <-chan []stages.Event {
	result := make(chan []stages.Event, 1)
	rdb, key := stages.Client(s.T, s.Addr), s.Q.EventsKey(0)
	go func() {
		var all []stages.Event
		for from := "0"; len(all) < n && s.Context().Err() == nil; {
			streams, err := rdb.XRead(s.Context(), &redis.XReadArgs{Streams: []string{key, from}, Count: 500, Block: time.Second}).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				break
			}
			for _, stream := range streams {
				for _, m := range stream.Messages {
					all, from = append(all, stages.ReadEvents(m)...), m.ID
				}
			}
		}
		result <- all
	}()
	return result
}

// slowestSweep returns the longest sweep in the slow log. It recognises sweeps by the number of their
// arguments.
func (s *stage) slowestSweep() (most time.Duration) {
	entries, err := s.Redis.SlowLogGet(s.Context(), -1).Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range entries {
		if lua.IsVerb(strings.ToLower(e.Args[0])) && len(e.Args) == 7 {
			most = max(most, e.Duration)
		}
	}
	return most
}

// checkOrder checks that the tasks ended in the order of their deadlines, each once. first overlaps
// with the events that the stream still has.
func (s *stage) checkOrder(first []stages.Event, crowd, after int) {
	s.Helper()
	rest := s.Events(s.Q)
	seen := make(map[string]bool, crowd+after)
	var last stages.Event
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
