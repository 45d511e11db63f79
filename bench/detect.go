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
	all, at := time.Duration(n), time.Duration(i)
	return span/all*at + span%all*at/all // span*at can be more than the largest duration
}

// reap runs a reaper until stop is called.
func reap(ctx context.Context, q *queue.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reaper.New(q, reaper.Config{}).Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
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
