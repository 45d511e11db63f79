package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// Detect measures how late timeouts are noticed. It enqueues n tasks whose deadlines are spread
// over a span, beside other tasks with far deadlines, and runs one reaper. An observer reads the
// event stream and takes Redis TIME when events arrive. The lag is that time minus the deadline.
// A task is late one ms after its deadline, so the least possible lag is 1 ms.
func Detect(ctx context.Context, rdb redis.UniversalClient, n, others int, span time.Duration) (Report, error) {
	return detectOn(ctx, rdb, Report{Bench: "detect"}, "detection lag", n, others, span)
}

// SameMillisecond is like Detect for n deadlines in one ms. The max is how long it takes until an
// observer has seen the last of them end.
func SameMillisecond(ctx context.Context, rdb redis.UniversalClient, n int) (Report, error) {
	return detectOn(ctx, rdb, Report{Bench: "same ms"}, "all of one ms", n, 0, 0)
}

func detectOn(ctx context.Context, rdb redis.UniversalClient, r Report, name string, n, others int, span time.Duration) (Report, error) {
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	lags, err := detect(ctx, q, n, others, span)
	if err != nil {
		return r, err
	}
	r.percentiles(name, lags)
	return r, nil
}

// detect returns the lags that Detect measures, in an open namespace.
func detect(ctx context.Context, q *queue.Queue, n, others int, span time.Duration) ([]time.Duration, error) {
	if err := far(ctx, q, others); err != nil {
		return nil, err
	}
	start, err := q.Client().Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	lead := leadOf(n)
	due := func(i int) queue.Task {
		return queue.Task{Kind: "due", Deadline: start.Add(lead + startOf(i, n, span))}
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, due))); err != nil {
		return nil, err
	}
	stop := reap(ctx, q)
	defer stop()
	return observe(ctx, q, n, lead+span+90*time.Second)
}

// leadOf returns how long before the first deadline to begin enqueuing n tasks.
func leadOf(n int) time.Duration { return time.Duration(n)*time.Second/30000 + time.Second }

// startOf returns when event i of n begins, if they are spread over a span.
func startOf(i, n int, span time.Duration) time.Duration {
	total, at := time.Duration(n), time.Duration(i)
	return span/total*at + span%total*at/total // span*at can be more than the largest duration
}

// reap runs a reaper until stop is called.
func reap(ctx context.Context, q *queue.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reaper.New(q, reaper.Config{}).Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// observe waits for n timeouts and returns how late each was seen. It fails if one is missing,
// appears twice, or is not after its deadline.
func observe(ctx context.Context, q *queue.Queue, n int, within time.Duration) ([]time.Duration, error) {
	return observeStream(ctx, q.Client(), q.EventsKey(0), n, within, func(entry redis.XMessage) (ends []ending, err error) {
		for _, e := range events.In(0, entry) {
			if e.Kind != "task_timed_out" {
				continue
			}
			due, err := strconv.ParseInt(e.Fields["deadline_at"], 10, 64)
			if err != nil {
				return nil, err
			}
			ends = append(ends, ending{e.TaskID, time.UnixMilli(due)})
		}
		return ends, nil
	})
}

// ending is an entry of a stream about a task that is out of time.
type ending struct {
	task string
	due  time.Time
}

// observeStream is like observe, for any stream. endings decodes an entry.
func observeStream(ctx context.Context, rdb redis.UniversalClient, key string, n int, within time.Duration,
	endings func(redis.XMessage) ([]ending, error)) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	seen := make(map[string]bool, n)
	lags := make([]time.Duration, 0, n)
	for last := "0"; len(seen) < n; {
		entries, now, err := nextEntries(ctx, rdb, key, last)
		if err != nil {
			return nil, fmt.Errorf("%d of %d timeouts seen: %w", len(seen), n, err)
		}
		for _, entry := range entries {
			last = entry.ID
			ends, err := endings(entry)
			if err != nil {
				return nil, err
			}
			for _, e := range ends {
				lag := now.Sub(e.due)
				if err := fair(e, lag, seen); err != nil {
					return nil, err
				}
				lags = append(lags, lag)
			}
		}
	}
	return lags, nil
}

// nextEntries waits up to a second for more entries, and returns the time of Redis at which they came.
func nextEntries(ctx context.Context, rdb redis.UniversalClient, key, last string) ([]redis.XMessage, time.Time, error) {
	streams, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{key, last}, Count: 1000, Block: time.Second}).Result()
	if err == redis.Nil {
		return nil, time.Time{}, ctx.Err()
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := rdb.Time(ctx).Result()
	return streams[0].Messages, now, err
}

// fair returns an error for an end that is not after its deadline, or that appears twice.
func fair(e ending, lag time.Duration, seen map[string]bool) error {
	if seen[e.task] {
		return fmt.Errorf("task %s timed out twice", e.task)
	}
	if lag <= 0 {
		return fmt.Errorf("task %s timed out %v before its deadline", e.task, -lag)
	}
	seen[e.task] = true
	return nil
}

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
