package queue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A few tasks kill each worker that runs them. Each ends FAILED, and none of the tasks that die with it does, however many of them a
// worker holds at a time, and whatever is in line.
func TestNoInnocentTaskFailsBesideOnesThatKillTheirWorkers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for n := range size.Times(1, 3, 30) {
			random := rand.New(rand.NewPCG(size.Seed(), uint64(n)))
			f := newFleet(t, rdb, fmt.Sprint("fleet", n), random)
			f.play()
		}
	})
}

// fleet is a set of workers that run tasks, each a step after the other, on a clock of the test.
type fleet struct {
	*testing.T
	rdb    redis.UniversalClient
	q      *queue.Queue
	random *rand.Rand
	now    time.Time
	poison map[string]bool
	born   int
	crew   []*member
}

// member is a worker, and what it holds.
type member struct {
	name    string
	seq     int64
	slots   int
	told    bool // it says what else it holds, as package worker does
	isolate bool
	claims  []queue.Claim
}

func newFleet(t *testing.T, rdb redis.UniversalClient, name string, random *rand.Rand) *fleet {
	q := queuetest.Open(t, rdb, queue.Config{Namespace: name, Library: testclock.Library(t, rdb)})
	f := &fleet{T: t, rdb: rdb, q: q, random: random, now: testclock.Start, poison: map[string]bool{}}
	for range 1 + random.IntN(4) {
		f.crew = append(f.crew, f.hire())
	}
	return f
}

func (f *fleet) hire() *member {
	f.born++
	return &member{name: fmt.Sprint("w", f.born), slots: 1 + f.random.IntN(20), told: f.random.IntN(2) == 0}
}

func (f *fleet) play() {
	ids := []string{}
	for i := range 333 {
		r := queuetest.Enqueue(f, f.q, queue.Task{Priority: f.random.IntN(2), Retention: 24 * time.Hour})
		ids = append(ids, r.ID)
		f.poison[r.ID] = i%100 == 50
	}
	for step := 0; f.left() > 0; step++ {
		if step > 5000 {
			f.Fatalf("%d tasks have not ended", f.left())
		}
		for i, m := range f.crew {
			if f.step(m) {
				f.crew[i] = f.hire()
				f.now = f.now.Add(2 * time.Second)
			}
		}
		f.now = f.now.Add(100 * time.Millisecond)
		testclock.Set(f, f.rdb, f.q.Root(0), f.now)
		if _, err := reaper.Sweep(f.Context(), f.q, 0, "r", 100, time.Second); err != nil {
			f.Fatal(err)
		}
	}
	for _, id := range ids {
		r, err := f.q.Get(f.Context(), id)
		if err != nil {
			f.Fatal(err)
		}
		if want := map[bool]queue.Status{true: queue.Failed, false: queue.Completed}[f.poison[id]]; r.Status != want {
			f.Errorf("%s (kills its worker: %v) is %s %q after %d lost leases, want %s", id, f.poison[id], r.Status, r.Error, r.LeaseLosses, want)
		}
	}
}

func (f *fleet) left() int64 {
	stats, err := f.q.Stats(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	line := stats.Queues[0]
	return line.Enqueued - line.Completed - line.Failed
}

// step lets a worker settle some of its tasks and fetch others. It reports whether the worker died of one.
func (f *fleet) step(m *member) (died bool) {
	a := f.q.Attempts()
	kept := m.claims[:0]
	for _, c := range m.claims {
		if f.poison[c.ID] {
			return true
		}
		if f.random.IntN(3) == 0 {
			kept = append(kept, c)
			continue
		}
		o := queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}
		if _, err := a.Settle(f.Context(), 0, m.name, queue.NewCall(), []queue.Outcome{o}, queue.Ask{}); err != nil {
			f.Fatal(err)
		}
	}
	m.claims = kept
	n := m.slots - len(kept)
	ask := queue.Ask{N: n, Seq: m.seq + 1, Lease: time.Second, Quotas: []queue.Quota{{Queue: "default", N: n}}}
	switch {
	case !m.told:
	case m.isolate && len(kept) > 0:
		ask.N = 0
	case m.isolate:
		ask.N, ask.State = 1, queue.AskAlone
	case len(kept) > 0:
		ask.State = queue.AskBusy
	default:
		ask.State = queue.AskIdle
	}
	m.seq++
	trip, err := a.Fetch(f.Context(), 0, m.name, ask)
	if err != nil {
		f.Fatal(err)
	}
	if ask.N > 0 {
		m.isolate = trip.Isolate || len(trip.Claims) > 0 && trip.Claims[0].Alone
	}
	m.claims = append(m.claims, trip.Claims...)
	for _, c := range trip.Claims {
		if c.Alone && len(m.claims) > 1 {
			f.Fatalf("%s got %s beside others, although it must run alone", m.name, c.ID)
		}
	}
	return false
}

// A worker of several partitions may have held other tasks than the only one of a partition, so the first two losses do not count.
func TestALostLeaseOfAWorkerOfSeveralPartitions(t *testing.T) {
	for partitions, want := range map[int]int{1: 4, 2: 6} {
		rdb := redistest.Shared(t).Client(t)
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: partitions})
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		partition := queuetest.Partition(t, id)
		for n := 1; ; n++ {
			ask := queue.Ask{N: 1, Seq: 1, Lease: time.Millisecond, Quotas: []queue.Quota{{Queue: "default", N: 1}}}
			trip, err := q.Attempts().Fetch(t.Context(), partition, fmt.Sprint("w", n), ask)
			if err != nil || len(trip.Claims) != 1 || trip.Claims[0].Alone != (n > 2) {
				t.Fatalf("claims %+v, %v, want one, alone from the third on (%d)", trip.Claims, err, n)
			}
			for swept := 0; swept == 0; {
				s, err := reaper.Sweep(t.Context(), q, partition, "r", 100, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				swept = s.GivenBack
			}
			r, err := q.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if ended := r.Status.Ended(); ended != (n == want) {
				t.Fatalf("with %d partitions it is %s after %d lost leases, want FAILED after %d", partitions, r.Status, n, want)
			} else if ended {
				break
			}
		}
	}
}
