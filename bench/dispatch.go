package bench

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// DispatchLoad adjusts DispatchTrial. The zero value is ready to use.
type DispatchLoad struct {
	// Tasks is how many lone tasks are measured. The default is 50.
	Tasks int
	// Pause is the longest time that the worker is idle before each task. The default is 1 s.
	Pause time.Duration
}

// DispatchTrial measures how long a lone task takes from Enqueue until its handler is called, on
// an idle worker of concurrency 10. Before each task the worker is idle for a random time, so
// that tasks are not in step with a worker that polls. Figures: dispatch_p50, dispatch_p99,
// dispatch_max.
func DispatchTrial(l DispatchLoad) Trial {
	l.Tasks, l.Pause = cmp.Or(l.Tasks, 50), cmp.Or(l.Pause, time.Second)
	t := Trial{bench: "dispatch", unit: "ms", load: count(l.Tasks, "lone task"), runs: 3, sizes: Sizes{Tasks: l.Tasks}}
	t.warm = []turn{dispatchTurn(DispatchLoad{Tasks: 1, Pause: time.Millisecond})}
	t.turns = []turn{dispatchTurn(l)}
	return t.complete()
}

func dispatchTurn(l DispatchLoad) turn {
	return turn{
		figures: lagFigures("dispatch", "from Enqueue to its handler", nil),
		run: func(ctx context.Context, s System) ([]float64, error) {
			lags, err := dispatchLags(ctx, s, l)
			return lagValues(lags), err
		},
	}
}

// dispatchLags enqueues lone tasks for an idle worker.
func dispatchLags(ctx context.Context, s System, l DispatchLoad) (lags []time.Duration, err error) {
	arrived := make(chan time.Time, 1)
	crew, err := s.Work(ctx, Workers{Servers: 1, Concurrency: 10}, func() { arrived <- time.Now() })
	if err != nil {
		return nil, err
	}
	for range l.Tasks {
		pause(ctx, 2*time.Millisecond+rand.N(l.Pause)) // long enough for the worker to be idle again
		lag, err := dispatchOne(ctx, s, arrived, crew.Failed)
		if err != nil {
			return nil, errors.Join(err, crew.Stop())
		}
		lags = append(lags, lag)
	}
	return lags, errors.Join(crew.Stop(), s.Check(ctx, l.Tasks))
}

// dispatchOne returns how long one task takes to its handler.
func dispatchOne(ctx context.Context, s System, arrived <-chan time.Time, failed <-chan error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.Prepare(payloads(1))
	start := time.Now()
	if err := s.Enqueue(ctx, 0); err != nil {
		return 0, err
	}
	select {
	case at := <-arrived:
		return at.Sub(start), nil
	case err := <-failed:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
