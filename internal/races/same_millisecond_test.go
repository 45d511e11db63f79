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

// What the machine does beside this test only adds to what another client waits, so of
// three rounds the best one counts, and a second is played only if the first was too slow.
func TestSameMillisecond(t *testing.T) {
	redistest.NoRace(t, "the detector stretches what it measures")
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
		t.Error("in no round did another client's GETs have a p99 under the limit while tasks were ended")
	}
}

// sameMillisecond ends tasks that have one deadline, and some of the next millisecond. It
// tells whether another client's commands went through meanwhile.
func sameMillisecond(t *testing.T, crowd, after int) bool {
	server := redistest.Start(t, "--slowlog-log-slower-than", "1000", "--slowlog-max-len", "5000")
	s := newStage(t, server.Addr, queue.Config{})
	deadline := s.gather(crowd, after)

	// Another client, all the time: first while nothing is due, then while all is.
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
	// On a machine that others use everything stretches alike: what matters is that no
	// script holds up the others for long beside the work that there is.
	limit, each := 10*time.Millisecond, took/time.Duration(crowd+after)
	if usual := 25 * time.Microsecond; each > usual {
		limit = limit * each / usual
	}
	t.Logf("%d deadlines in one ms and %d in the next: drained in %v, %.0f/s", crowd, after, took, float64(crowd+after)/took.Seconds())
	t.Logf("GETs of another client meanwhile: %d, median %v, p99 %v of %v, max %v; before, p99 %v; slowest sweep %v",
		len(during), during.at(0.5), p99, limit, during.at(1), calmP99, slowest)
	if took > 15*time.Second {
		t.Errorf("it took %v, want 4s on a machine of our own", took)
	}
	s.checkOrder(await.Receive(t, tail, "the first events are there"), crowd, after)
	return p99 <= limit
}

// watch reads a key again and again until stop, and tells how long each GET took.
func (s *stage) watch(rdb *redis.Client, stop <-chan struct{}) (took spans) {
	s.Helper()
	for begun := time.Now(); ; {
		select {
		case <-stop:
			return took
		default:
		}
		if time.Since(begun) > await.Patience {
			s.Fatal("they do not end")
		}
		start := time.Now()
		if err := rdb.Get(s.Context(), "bystander").Err(); err != nil {
			s.Error(err)
			return took
		}
		took = append(took, time.Since(start))
	}
}

// gather enqueues tasks with one deadline, and some with the next millisecond, in
// time before it.
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
		s.Logf("enqueueing took longer than the %v that it was given", wait+time.Second)
	}
	s.Fatal("enqueueing does not keep up")
	return time.Time{}
}

// crowd tells whether all were enqueued in time.
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

// ending makes tasks that have the same deadline.
func ending(n int, deadline time.Time) []queue.Task {
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Deadline: deadline}
	}
	return tasks
}

// tail collects the first n events as they come: the stream keeps no more than about
// the newest 100,000.
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

// slowestSweep is the longest run of a sweep that the slow log has. It is known by how
// few arguments it has.
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

// checkOrder: oldest first, and each once. The two lists of events overlap.
func (s *stage) checkOrder(first []stages.Event, crowd, after int) {
	s.Helper()
	rest := s.Events(s.Q)
	seen := make(map[string]bool, crowd+after)
	var last stages.Event
	var once sync.Once
	for _, e := range append(first, rest...) {
		if seen[e.ID] {
			continue // in both
		}
		seen[e.ID] = true
		if e.Kind != "task_timed_out" {
			s.Complain("%s has the event %s", e.ID, e.Kind)
		}
		if e.Deadline < last.Deadline || e.Deadline == last.Deadline && e.ID < last.ID {
			once.Do(func() {
				s.Errorf("%s of %d was ended after %s of %d: not oldest first", e.ID, e.Deadline, last.ID, last.Deadline)
			})
		}
		last = e
	}
	if len(seen) != crowd+after {
		s.Errorf("%d tasks have an event, want %d", len(seen), crowd+after)
	}
	if len(rest) > crowd+after || len(rest) < crowd {
		s.Errorf("the stream holds %d events of %d tasks", len(rest), crowd+after)
	}
	stats, err := s.Q.Stats(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if got := stats.Queues[0]; got.TimedOut != int64(crowd+after) || got.Ready != 0 {
		s.Errorf("the counters are %+v", got)
	}
}
