package bench

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Throughput measures how many tasks a second are enqueued one by one from 16 goroutines, enqueued
// as one list, and drained by one worker at concurrency 50, with n tasks each. It also measures how
// long a lone task takes from Enqueue to its handler. Handlers do nothing. Tasks have 100 bytes and
// a deadline. Full tasks have 400 bytes, retries, limits and headers too, and their namespace
// records all events.
func Throughput(ctx context.Context, rdb redis.UniversalClient, n, partitions int, full bool) (Report, error) {
	r, template, config := Report{Bench: "throughput"}, noop, queue.Config{Partitions: partitions}
	if full {
		template, config.Events = fullTask, "all"
	}
	q, err := openAs(ctx, rdb, config)
	if err != nil {
		return r, err
	}
	took, err := enqueueOneByOne(ctx, q, tasks(n, template), 16)
	if err != nil {
		return r, err
	}
	r.add("enqueue one by one", float64(n)/took.Seconds(), "tasks/s")

	if q, err = openAs(ctx, rdb, config); err != nil {
		return r, err
	}
	list := tasks(n, template)
	start := time.Now()
	if err := accepted(q.EnqueueAll(ctx, list)); err != nil {
		return r, err
	}
	r.add("enqueue in lists", float64(n)/time.Since(start).Seconds(), "tasks/s")

	if took, err = drain(ctx, q, n, 50); err != nil {
		return r, err
	}
	r.add("drain", float64(n)/took.Seconds(), "tasks/s")
	return r, dispatch(ctx, q, &r, 500)
}

// Dispatch measures how long each of n lone tasks takes from Enqueue to its handler, on an idle
// worker.
func Dispatch(ctx context.Context, rdb redis.UniversalClient, n int) (Report, error) {
	r := Report{Bench: "dispatch"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	return r, dispatch(ctx, q, &r, n)
}

func enqueueOneByOne(ctx context.Context, q *queue.Queue, list []queue.Task, goroutines int) (time.Duration, error) {
	start := time.Now()
	err := fromGoroutines(len(list), goroutines, func(i int) error {
		_, err := q.Enqueue(ctx, list[i])
		return err
	})
	return time.Since(start), err
}

// drain runs a worker until it has handled and settled n tasks.
func drain(ctx context.Context, q *queue.Queue, n, concurrency int) (time.Duration, error) {
	countdown := newCountdown(n)
	w := worker.New(q, worker.Config{Concurrency: concurrency})
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) {
		countdown.decrement()
		return nil, nil
	})
	return workOff(ctx, q, w, n, countdown)
}

// dispatch enqueues lone tasks for an idle worker.
func dispatch(ctx context.Context, q *queue.Queue, r *Report, n int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	arrived := make(chan time.Time, 1)
	w := worker.New(q, worker.Config{Concurrency: 10})
	w.HandleRaw("ping", func(context.Context, []byte) ([]byte, error) {
		arrived <- time.Now()
		return nil, nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	lags := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if _, err := q.Enqueue(ctx, queue.Task{Kind: "ping", Timeout: time.Minute}); err != nil {
			return err
		}
		select {
		case at := <-arrived:
			lags = append(lags, at.Sub(start))
		case err := <-done:
			return stoppedEarly(ctx, err)
		case <-ctx.Done():
			return ctx.Err()
		}
		pause(ctx, 2*time.Millisecond) // long enough for the worker to be idle again
	}
	r.percentiles("idle dispatch", lags)
	stop()
	return <-done
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

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
	countdown := newCountdown(l.Tasks)
	start := clock()
	crew, err := s.Work(ctx, Workers{l.Servers, concurrency}, countdown.decrement)
	if err != nil {
		return 0, err
	}
	err = countdown.wait(ctx, crew.Failed)
	took := time.Since(start)
	return took, errors.Join(err, crew.Stop(), s.Check(ctx, l.Tasks))
}

func enqueueAndDrain(ctx context.Context, s System, l ThroughputLoad) (time.Duration, error) {
	calls := s.Prepare(payloads(l.Tasks))
	total, warm := newCountdown(l.Tasks), newCountdown(max(calls/20, 1))
	failed := make(chan error, 1)
	start := clock()
	go func() {
		err := fromGoroutines(calls, 16, func(i int) error {
			defer warm.decrement()
			return s.Enqueue(ctx, i)
		})
		if err != nil {
			failed <- err
		}
	}()
	if err := warm.wait(ctx, failed); err != nil {
		return 0, err
	}
	crew, err := s.Work(ctx, Workers{l.Servers, concurrency}, total.decrement)
	if err != nil {
		return 0, err
	}
	err = total.wait(ctx, failed, crew.Failed)
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
