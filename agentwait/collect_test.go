package agentwait_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// NextEnds returns each end once, whatever the agent does when the child ends: it waits, it is in line, or it runs.
func TestEachEndIsReturnedOnce(t *testing.T) {
	s := newStage(t)
	var seen []string
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, n int) ([]string, error) {
		if err := a.Collect(); err != nil {
			return nil, err
		}
		for i := range n {
			agentwait.Schedule[string](a, i, queue.Task{Kind: "child", ID: fmt.Sprintf("c%d", i), Promise: true})
		}
		var all []string
		for len(all) < n {
			ends, err := agentwait.NextEnds(a)
			if err != nil {
				return nil, err
			}
			for _, r := range ends {
				all = append(all, nameOf(r))
			}
			seen = slices.Clone(all)
		}
		return all, nil
	})
	id := s.enqueue("agent", "5")
	s.run(1)
	resolve := func(name string) { s.resolve(id, name) }
	resolve("c3") // the agent waits
	resolve("c1") // it is in line
	s.run(1)
	if want := []string{"c3", "c1"}; !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
	resolve("c0")
	resolve("c4")
	resolve("c2")
	s.run(1)
	s.completed(id, `["c3","c1","c0","c4","c2"]`)
}

// A limit of NextEnds counts from its own start, or from a given instant.
func TestNextEndsHasALimit(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, _ int) (string, error) {
		if err := a.Collect(); err != nil {
			return "", err
		}
		agentwait.Schedule[string](a, nil, queue.Task{Kind: "child", ID: "late", Promise: true})
		_, err := agentwait.NextEnds(a.With(agentwait.Wait{Limit: time.Minute, From: a.Info().CreatedAt}))
		if late := (*agentwait.WaitTimeoutError)(nil); !errors.As(err, &late) {
			return "", err
		}
		ends, err := agentwait.NextEnds(a)
		if err != nil {
			return "", err
		}
		return string(ends[0].Result), nil
	})
	id := s.enqueue("agent", "0")
	s.advance(20 * time.Second)
	s.run(1)
	s.advance(40*time.Second + time.Millisecond)
	s.run(1)
	if _, err := s.q.Resolve(s.ctx, id+".late", []byte(`"in the end"`)); err != nil {
		t.Fatal(err)
	}
	s.run(1)
	s.completed(id, `"\"in the end\""`)
}

// An end, and the run of the agent after it, cost the same with 10 and with 1,000 children that have not ended. A replay of
// nine waits costs as much as one of two.
func TestAnEndCostsTheSameWithManyChildren(t *testing.T) {
	const heartbeat = 100 // a worker sometimes also sends a heartbeat, which is fewer commands and keys
	cost := func(n int) (costs []int64) {
		s := stageOn(t, ownRedis(t))
		s.collector(s.w)
		id := s.enqueue("collector", fmt.Sprint(n))
		s.run(1)
		for i := range 9 {
			before := calls(t, s.rdb)
			s.resolve(id, fmt.Sprintf("c%d", i))
			s.run(1)
			costs = append(costs, calls(t, s.rdb)-before)
		}
		return costs[1:] // the first end has no replay of a wait
	}
	few, many := cost(10), cost(1000)
	if all := slices.Concat(few, many); slices.Max(all)-slices.Min(all) > heartbeat {
		t.Errorf("the ends cost %d commands and keys with 10 children, and %d with 1,000", few, many)
	}
}

// Ends are handed over whole if there are more than one wait takes.
func TestMoreEndsThanOneWaitTakes(t *testing.T) {
	s := newStage(t)
	s.collector(s.w)
	id := s.enqueue("collector", "1200")
	s.run(1)
	for i := range 1200 {
		s.resolve(id, fmt.Sprintf("c%d", i))
	}
	s.run(1)
	s.completed(id, `[1,500,500,199]`)
}

// The ends up to the one that wakes the agent are handed over together and by their instants, even if no reaper has
// looked at the children that were out of time. The attempt after a lost one gets the same ends.
func TestEndsAreOrderedByTheirInstants(t *testing.T) {
	s := newStage(t)
	var runs [][]string
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, _ int) (string, error) {
		if err := a.Collect(); err != nil {
			return "", err
		}
		for i, d := range []time.Duration{3 * time.Second, time.Hour, time.Second, 2 * time.Second} {
			agentwait.Schedule[string](a, nil, queue.Task{Kind: "child", ID: fmt.Sprintf("c%d", i), Promise: true, Timeout: d})
		}
		ends, err := agentwait.NextEnds(a)
		if err != nil {
			return "", err
		}
		var names []string
		for _, r := range ends {
			names = append(names, nameOf(r))
		}
		runs = append(runs, names)
		if len(runs) == 1 {
			return "", errBoom
		}
		return "", nil
	})
	id := s.enqueueTask(queue.Task{Kind: "agent", Payload: []byte("0"), MaxRetries: 1})
	s.run(1)
	s.clock(2500 * time.Millisecond) // without a sweep
	s.resolve(id, "c1")
	s.run(1)
	s.advance(time.Hour)
	s.run(1)
	if want := "[[c2 c3 c1] [c2 c3 c1]]"; fmt.Sprint(runs) != want {
		t.Errorf("the runs got %v, want %s", runs, want)
	}
	s.is(id, queue.Completed)
}

// An agent that makes checkpoints gets each end once too, even if each of its attempts is lost.
func TestEndsSurviveCheckpointsAndLostAttempts(t *testing.T) {
	s := newStage(t)
	rng := rand.New(rand.NewPCG(1, 2))
	type state struct{ Names []string }
	lost := 0
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, n int) (string, error) {
		var st state
		restored, err := a.Restore(&st)
		if err != nil {
			return "", err
		}
		if !restored {
			if err := a.Collect(); err != nil {
				return "", err
			}
			for i := range n {
				agentwait.Schedule[string](a, i, queue.Task{Kind: "child", ID: fmt.Sprintf("c%d", i), Promise: true})
			}
		}
		for len(st.Names) < n {
			ends, err := agentwait.NextEnds(a)
			if err != nil {
				return "", err
			}
			for _, r := range ends {
				st.Names = append(st.Names, nameOf(r))
			}
			if rng.IntN(3) == 0 {
				lost++
				return "", errBoom
			}
			if rng.IntN(2) == 0 {
				if err := a.Checkpoint(st); err != nil {
					return "", err
				}
			}
		}
		return strings.Join(st.Names, " "), nil
	})
	const n = 60
	id := s.enqueueTask(queue.Task{Kind: "agent", Payload: fmt.Append(nil, n), MaxRetries: 1000, Backoff: queue.Backoff{Delay: queue.None}})
	s.run(1)
	var want []string
	for _, i := range rng.Perm(n) {
		want = append(want, fmt.Sprintf("c%d", i))
		s.resolve(id, want[len(want)-1])
		s.clock(time.Millisecond)
		if rng.IntN(2) == 0 {
			s.drain()
		}
	}
	s.drain()
	s.completed(id, fmt.Sprintf("%q", strings.Join(want, " ")))
	if lost == 0 {
		t.Error("no attempt was lost")
	}
}

// NextEnds refuses what it cannot do, and changes nothing.
func TestNextEndsRefusesOtherPolicies(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, _ int) (string, error) {
		for _, w := range []agentwait.Wait{{FailFast: true}, {KeepPending: true}, {From: s.now}, {Limit: time.Second, From: s.now, FromFirst: true}} {
			if _, err := agentwait.NextEnds(a.With(w)); !errors.Is(err, refusal.ErrInvalid) {
				return "", fmt.Errorf("NextEnds with %+v: %w", w, err)
			}
		}
		return "refused", nil
	})
	id := s.enqueue("agent", "0")
	s.run(1)
	s.completed(id, `"refused"`)
}

// collector registers an agent that collects the ends of n promises. Its result is how many each wait has handed over.
func (s *stage) collector(w *worker.Worker) {
	agentwait.Handle(w, "collector", func(a *agentwait.Agent, n int) (counts []int, err error) {
		if err := a.Collect(); err != nil {
			return nil, err
		}
		for i := range n {
			agentwait.Schedule[string](a, i, queue.Task{Kind: "child", ID: fmt.Sprintf("c%d", i), Promise: true})
		}
		for sum := 0; sum < n; {
			ends, err := agentwait.NextEnds(a)
			if err != nil {
				return nil, err
			}
			counts, sum = append(counts, len(ends)), sum+len(ends)
		}
		return counts, nil
	})
}

// resolve resolves a promise of an agent.
func (s *stage) resolve(agent, name string) {
	s.t.Helper()
	if _, err := s.q.Resolve(s.ctx, agent+"."+name, []byte(`"x"`)); err != nil {
		s.t.Fatal(err)
	}
}

// enqueueTask enqueues a task, and returns its id.
func (s *stage) enqueueTask(task queue.Task) string {
	s.t.Helper()
	r, err := s.q.Enqueue(s.ctx, task)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

// clock moves the clock without a sweep.
func (s *stage) clock(d time.Duration) {
	s.now = s.now.Add(d)
	testclock.Set(s.t, s.rdb, s.q.Root(0), s.now)
}

// nameOf returns the last part of a child's id.
func nameOf(r *queue.Record) string { return r.ID[strings.LastIndexByte(r.ID, '.')+1:] }

// calls returns how many commands a server has run and how many keys they have looked up, those of scripts included.
func calls(t *testing.T, rdb *redis.Client) (sum int64) {
	t.Helper()
	text, err := rdb.Info(t.Context(), "commandstats", "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "keyspace_hits" || name == "keyspace_misses" {
			looked, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += looked
		}
		if name, rest, ok := strings.Cut(line, ":calls="); ok && name != "cmdstat_info" {
			n, _, _ := strings.Cut(rest, ",")
			one, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += one
		}
	}
	return sum
}
