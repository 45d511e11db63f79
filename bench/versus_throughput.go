package bench

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"
)

// ThroughputLoad adjusts ThroughputTrial. The zero value is ready to use.
type ThroughputLoad struct {
	// Tasks is how many tasks each measurement handles. The default is 20,000.
	Tasks int
	// Servers is how many workers drain at once in this process, each with concurrency 50.
	// The default is 1.
	Servers int
}

// load is one measurement of throughput. It returns how long a System takes for the tasks.
type load struct {
	name, what string
	run        func(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error)
}

var loads = []load{
	{"enqueue_16", "enqueue one by one, 16 goroutines", enqueueFrom(16)},
	{"enqueue_64", "enqueue one by one, 64 goroutines", enqueueFrom(64)},
	{"enqueue_lists", "enqueue in lists", enqueueLists},
	{"drain", "drain, concurrency 50", drainAll},
	{"enqueue_and_drain", "enqueue while draining", enqueueAndDrain},
}

// ThroughputTrial measures tasks a second. Every task has a payload of 100 random bytes, and is
// made before the clock starts. A first round with a tenth of the tasks does not count. Figures:
//
//   - enqueue_16, enqueue_64: one call for each task, from 16 or 64 goroutines.
//   - enqueue_lists: one call for all tasks. A System that is not a Lister makes one call for
//     each task from 64 goroutines instead.
//   - drain: from the start of the workers until the last handler is called. Handlers do
//     nothing.
//   - enqueue_and_drain: 16 goroutines enqueue one by one, and the clock stops when the last
//     handler is called. Workers start when a twentieth of the calls is made, because an asynq
//     server that finds no task sleeps for about a second.
func ThroughputTrial(l ThroughputLoad) Trial {
	l.Tasks, l.Servers = cmp.Or(l.Tasks, 20000), cmp.Or(l.Servers, 1)
	t := Trial{bench: "throughput", unit: perSecond, load: count(l.Tasks, "task"), runs: 5, sizes: Sizes{Tasks: l.Tasks, Servers: l.Servers}}
	few := l
	few.Tasks = max(l.Tasks/10, 1)
	for _, load := range loads {
		t.warm = append(t.warm, load.turn(few))
		t.turns = append(t.turns, load.turn(l))
	}
	return t.complete()
}

// turn returns the turn that measures the load.
func (l load) turn(of ThroughputLoad) turn {
	return turn{
		figures: []figure{{name: l.name, what: l.what}},
		run: func(ctx context.Context, s System) ([]float64, error) {
			took, err := l.run(ctx, s, of)
			return []float64{float64(of.Tasks) / took.Seconds()}, err
		},
	}
}

func enqueueFrom(goroutines int) func(context.Context, System, ThroughputLoad) (time.Duration, error) {
	return func(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error) {
		calls := s.Prepare(payloads(l.Tasks))
		start := clock()
		err := fromGoroutines(calls, goroutines, func(i int) error { return s.Enqueue(ctx, i) })
		return time.Since(start), err
	}
}

func enqueueLists(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error) {
	calls := s.Prepare(payloads(l.Tasks))
	start := clock()
	err := enqueueAll(ctx, s, calls)
	return time.Since(start), err
}

// enqueueAll enqueues all prepared tasks in the fastest way that the System has.
func enqueueAll(ctx context.Context, s System, calls int) error {
	if lister, ok := s.(Lister); ok {
		return lister.EnqueueAll(ctx)
	}
	return fromGoroutines(calls, 64, func(i int) error { return s.Enqueue(ctx, i) })
}

func drainAll(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error) {
	if err := enqueueAll(ctx, s, s.Prepare(payloads(l.Tasks))); err != nil {
		return 0, err
	}
	all := newCountdown(l.Tasks)
	start := clock()
	crew, err := s.Work(ctx, Workers{l.Servers, concurrency}, all.one)
	if err != nil {
		return 0, err
	}
	err = all.wait(ctx, crew.Failed)
	took := time.Since(start)
	return took, errors.Join(err, crew.Stop(), s.Check(ctx, l.Tasks))
}

func enqueueAndDrain(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error) {
	calls := s.Prepare(payloads(l.Tasks))
	all, some := newCountdown(l.Tasks), newCountdown(max(calls/20, 1))
	failed := make(chan error, 1)
	start := clock()
	go func() {
		err := fromGoroutines(calls, 16, func(i int) error {
			defer some.one()
			return s.Enqueue(ctx, i)
		})
		if err != nil {
			failed <- err
		}
	}()
	if err := some.wait(ctx, failed); err != nil {
		return 0, err
	}
	crew, err := s.Work(ctx, Workers{l.Servers, concurrency}, all.one)
	if err != nil {
		return 0, err
	}
	err = all.wait(ctx, failed, crew.Failed)
	took := time.Since(start)
	return took, errors.Join(err, crew.Stop(), s.Check(ctx, l.Tasks))
}

// concurrency is the concurrency of each worker.
const concurrency = 50

// clock returns the start of a measurement. It first collects the garbage of the previous one.
func clock() time.Time {
	runtime.GC()
	return time.Now()
}

// payloads returns n payloads of 100 random bytes.
func payloads(n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = payload()
	}
	return list
}
