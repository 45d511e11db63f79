package bench

import (
	"context"
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
	r, one, config := Report{Bench: "throughput"}, noop, queue.Config{Partitions: partitions}
	if full {
		one, config.Events = fullTask, "all"
	}
	q, err := openAs(ctx, rdb, config)
	if err != nil {
		return r, err
	}
	took, err := enqueueOneByOne(ctx, q, tasks(n, one), 16)
	if err != nil {
		return r, err
	}
	r.add("enqueue one by one", float64(n)/took.Seconds(), "tasks/s")

	if q, err = openAs(ctx, rdb, config); err != nil {
		return r, err
	}
	list := tasks(n, one)
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
	left := newCountdown(n)
	w := worker.New(q, worker.Config{Concurrency: concurrency})
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) {
		left.one()
		return nil, nil
	})
	return workOff(ctx, q, w, n, left)
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
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	lags := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if _, err := q.Enqueue(ctx, queue.Task{Kind: "ping", Timeout: time.Minute}); err != nil {
			return err
		}
		select {
		case at := <-arrived:
			lags = append(lags, at.Sub(start))
		case err := <-ended:
			return stoppedEarly(ctx, err)
		case <-ctx.Done():
			return ctx.Err()
		}
		pause(ctx, 2*time.Millisecond) // long enough for the worker to be idle again
	}
	r.percentiles("idle dispatch", lags)
	stop()
	return <-ended
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
