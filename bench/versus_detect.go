package bench

import (
	"context"
	"fmt"
	"time"
)

// DeadlineLoad adjusts DetectTrial. The zero value has no tasks.
type DeadlineLoad struct {
	// Pending is how many tasks reach their deadline while no worker has them.
	Pending int
	// Running is how many tasks reach their deadline while their handlers run, all at once.
	Running int
	// Others is how many other tasks with a far deadline there are, in another queue.
	Others int
	// Over is the span of time that the deadlines are spread over.
	Over time.Duration
}

// runFor is the timeout of a running task. asynq's timeouts are whole seconds.
const runFor = time.Second

// DetectTrial measures how long after its deadline an observer sees a task ended. Figures, each
// as _p50, _p99 and _max:
//
//   - detect_pending: a task that no worker has. See PendingDeadlines.
//   - detect_running: a task whose handler runs. See RunningDeadlines.
//   - detect_handler: how long after the deadline that handler's context ends, seen in it.
func DetectTrial(l DeadlineLoad) Trial {
	pending := func(s System) bool { _, ok := s.(PendingDeadlines); return ok }
	running := func(s System) bool { _, ok := s.(RunningDeadlines); return ok }
	t := Trial{bench: "detect", unit: "ms", runs: 3,
		load:  fmt.Sprintf("%d pending and %d running tasks beside %d others", l.Pending, l.Running, l.Others),
		sizes: Sizes{Tasks: l.Pending, Running: l.Running, Others: l.Others, OverMS: l.Over.Milliseconds()}}
	t.turns = []turn{{
		figures: lagFigures("detect_pending", "pending task, its end is seen", pending),
		run: func(ctx context.Context, s System) ([]float64, error) {
			lags, err := s.(PendingDeadlines).PendingLags(ctx, l)
			return lagValues(lags), allSeen(lags, l.Pending, err)
		},
	}, {
		figures: append(lagFigures("detect_running", "running task, its end is seen", running),
			lagFigures("detect_handler", "running task, its context ends", running)...),
		run: func(ctx context.Context, s System) ([]float64, error) {
			lags, err := s.(RunningDeadlines).RunningLags(ctx, l)
			err = allSeen(lags.Noticed, l.Running, allSeen(lags.Cancelled, l.Running, err))
			return append(lagValues(lags.Noticed), lagValues(lags.Cancelled)...), err
		},
	}}
	return t.complete()
}

// allSeen returns an error if a System lost some tasks.
func allSeen(lags []time.Duration, n int, err error) error {
	if err == nil && len(lags) != n {
		err = fmt.Errorf("%d of %d ends were seen", len(lags), n)
	}
	return err
}

// whileRunning enqueues tasks at even intervals over the span of the load, while watch waits for
// their ends. It returns when their handlers' contexts have ended too.
func whileRunning(ctx context.Context, l DeadlineLoad, cancelled *lagList, enqueue func(ctx context.Context) error,
	watch func(ctx context.Context) ([]time.Duration, error)) (lags RunningLags, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Over+patience)
	defer cancel()
	seen := make(chan error, 1)
	go func() {
		var err error
		lags.Noticed, err = watch(ctx)
		seen <- err
	}()
	begin := time.Now()
	for i := range l.Running {
		pause(ctx, time.Until(begin.Add(startOf(i, l.Running, l.Over))))
		if err := enqueue(ctx); err != nil {
			cancel()
			<-seen
			return lags, err
		}
	}
	if err := <-seen; err != nil {
		return lags, err
	}
	lags.Cancelled, err = cancelled.wait(ctx)
	return lags, err
}
