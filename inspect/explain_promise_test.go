package inspect_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// The bounds that Explain gives hold for agents with random waits and tasks with random limits, under random
// calls. A task has left its state once its bound is past and a sweep has run. While the task stays in
// that state, its bound never moves to a later instant.
func TestNoTaskStaysInAStateBeyondItsBound(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Parallel()
	rounds := size.Times(8, 8, 1500)
	rdb := redistest.Shared(t).Client(t)
	library := testclock.Library(t, rdb)
	var told, bounded, begun, decided int
	for round := range rounds {
		namespace := redistest.Namespace(t)
		q, err := queue.Open(context.Background(), rdb, queue.Config{Namespace: namespace, Library: library, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		o := &oracle{t: t, q: q, rdb: rdb, seed: round, r: rand.New(rand.NewPCG(uint64(round), 1)), now: testclock.Start, said: map[string]saying{}}
		o.play()
		told, bounded, begun, decided = told+o.told, bounded+o.bounded, begun+o.begun, decided+o.decided
		rdb.Del(context.Background(), q.Root(0)+":clock") // it belongs to the test, and Audit would report it
		queuetest.Sound(t, q)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", round, strings.Join(o.log, "\n"))
		}
	}
	t.Logf("%d explanations, %d with a bound; %d bounds were limits that begin with the first end, and %d were exact to the ms", told, bounded, begun, decided)
	if bounded < told/3 || begun < rounds || decided < rounds {
		t.Errorf("the test covers too little: of %d explanations %d had a bound; %d bounds were limits that begin with the first end, and %d were exact to the ms",
			told, bounded, begun, decided)
	}
}

// saying is what Explain said of a task while its record did not change.
type saying struct {
	record map[string]string // without the fields that do not affect its state
	bound  inspect.Bound
	ends   inspect.Bound
}

type oracle struct {
	t    *testing.T
	q    *queue.Queue
	rdb  *redis.Client
	seed int
	r    *rand.Rand
	now  time.Time
	wait time.Duration // until the next sweep
	seq  int64
	ids  []string
	said map[string]saying
	log  []string

	lively, told, bounded, begun, decided int
}

func (o *oracle) note(format string, args ...any) {
	o.log = append(o.log, o.now.Sub(testclock.Start).String()+" "+fmt.Sprintf(format, args...))
}

func (o *oracle) play() {
	testclock.Set(o.t, o.rdb, o.q.Root(0), o.now)
	lazy := o.seed%4 == 3 // sweeps come late
	for range 40 {
		if o.t.Failed() {
			return
		}
		if o.lively < 8 {
			o.agent()
		}
		o.act()
		step := time.Duration(o.r.IntN(4000)) * time.Millisecond
		if !lazy {
			step = min(step, o.wait)
		}
		o.now = o.now.Add(step)
		testclock.Set(o.t, o.rdb, o.q.Root(0), o.now)
		o.sweep()
		o.look(lazy)
	}
}

// sweep sweeps until nothing is due.
func (o *oracle) sweep() {
	for range 100 {
		s, err := reaper.Sweep(context.Background(), o.q, 0, "r", 100, time.Hour)
		if err != nil || len(s.Errors) > 0 {
			o.t.Fatalf("sweep: %v %v", err, s.Errors)
		}
		if o.wait = s.Wait; s.Wait > 0 {
			return
		}
	}
	o.t.Fatal("something is still due after 100 sweeps")
}

// look compares what Explain said before with the records, and calls Explain again.
func (o *oracle) look(lazy bool) {
	o.lively = 0
	for _, id := range o.ids {
		if o.said[id].bound.Kind == inspect.BoundFinal {
			continue
		}
		r, err := o.q.Get(context.Background(), id)
		if err != nil {
			continue // its record was removed
		}
		e, err := inspect.Explain(context.Background(), o.q, id)
		if err != nil {
			o.t.Fatal(err)
		}
		record := maps.Clone(r.Fields)
		delete(record, "children")
		before, known := o.said[id]
		same := known && maps.Equal(before.record, record)
		o.told++
		if !r.Status.Ended() {
			o.lively++
		}
		if e.Bound.Kind != inspect.BoundNone && e.Bound.Kind != inspect.BoundFinal {
			o.bounded++
		}
		if !same {
			o.note("%s: %s", id, e)
		}
		switch {
		case same && !r.Status.Ended() && over(before.bound, o.now):
			o.t.Errorf("%s is still in the same state, after its bound %+v: %s", id, before.bound, e)
		case same && !lazy && later(e.Bound, before.bound):
			o.t.Errorf("the bound of %s has moved to a later instant than %+v: %s", id, before.bound, e)
		case known && !r.Status.Ended() && over(before.ends, o.now):
			o.t.Errorf("%s has not ended, and was to end by %+v: %s", id, before.ends, e)
		case known && later(e.EndsBy, before.ends):
			o.t.Errorf("EndsBy of %s has moved to a later instant than %+v: %s", id, before.ends, e)
		case known && !same && before.bound.At.Equal(o.now.Add(-time.Millisecond)):
			o.decided++
		}
		if e.EndsBy.Kind == inspect.BoundDecided || e.Why == inspect.WhyWaking {
			o.t.Errorf("%s is out of time, and the sweep did not end it: %s", id, e)
		}
		o.said[id] = saying{record, o.promised(id, e.Bound, lazy), e.EndsBy}
	}
}

// promised returns the part of a bound that sweeps can keep. A grace begins with the sweep that ends the
// patience, and so can a limit that begins with the first end. If a timer is due in the ms in which the
// patience of a wait ends, the timer's end can be the first one, and it is one ms later.
func (o *oracle) promised(id string, b inspect.Bound, lazy bool) inspect.Bound {
	begins := b.Kind == inspect.BoundWait && b.Task != id
	if begins {
		o.begun++
		b.At = b.At.Add(time.Millisecond)
	}
	if lazy && (begins || b.Kind == inspect.BoundPatience) {
		return inspect.Bound{Kind: inspect.BoundNone}
	}
	return b
}

func over(b inspect.Bound, now time.Time) bool {
	return b.Kind != inspect.BoundNone && b.Kind != inspect.BoundFinal && b.At.Before(now)
}

// later reports whether a bound has moved to a later instant.
func later(now, before inspect.Bound) bool {
	if before.Kind == inspect.BoundNone || now.Kind == inspect.BoundFinal {
		return false
	}
	return now.Kind == inspect.BoundNone || now.At.After(before.At)
}
