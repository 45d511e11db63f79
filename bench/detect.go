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

// Detect measures how late timeouts are noticed: n deadlines spread over a span,
// with others alive, one reaper, and an observer that shares nothing with it: it
// reads the event stream, and stamps each event with Redis TIME when it arrives.
// The lag is that stamp less the deadline; a deadline is over one ms after it, so
// the least that there can be is 1 ms.
func Detect(ctx context.Context, rdb redis.UniversalClient, n, others int, span time.Duration) (Report, error) {
	r := Report{Bench: "detect"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	far := func(int) queue.Task { return queue.Task{Kind: "far", Queue: "far", Timeout: time.Hour} }
	if err := accepted(q.EnqueueAll(ctx, tasks(others, far))); err != nil {
		return r, err
	}
	lead := time.Duration(n)*time.Second/50000 + time.Second // to be in before the first is due
	start, err := rdb.Time(ctx).Result()
	if err != nil {
		return r, err
	}
	due := func(i int) queue.Task {
		at := start.Add(lead + span*time.Duration(i)/time.Duration(n))
		return queue.Task{Kind: "due", Deadline: at}
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, due))); err != nil {
		return r, err
	}
	stop := reap(ctx, q)
	defer stop()
	lags, err := observe(ctx, q, n, lead+span+30*time.Second)
	if err != nil {
		return r, err
	}
	r.percentiles("detection lag", lags)
	return r, nil
}

// SameMillisecond measures n deadlines in one ms: how long until the last of them
// is seen to have ended.
func SameMillisecond(ctx context.Context, rdb redis.UniversalClient, n int) (Report, error) {
	r := Report{Bench: "same ms"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	start, err := rdb.Time(ctx).Result()
	if err != nil {
		return r, err
	}
	at := start.Add(time.Duration(n)*time.Second/30000 + time.Second)
	due := func(int) queue.Task { return queue.Task{Kind: "due", Deadline: at} }
	if err := accepted(q.EnqueueAll(ctx, tasks(n, due))); err != nil {
		return r, err
	}
	stop := reap(ctx, q)
	defer stop()
	lags, err := observe(ctx, q, n, 90*time.Second)
	if err != nil {
		return r, err
	}
	r.percentiles("all of one ms", lags)
	return r, nil
}

// reap runs a reaper until stop.
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

// observe waits for n timeouts and says how late each was seen. It fails if one is
// missing, told twice, or told before its time.
func observe(ctx context.Context, q *queue.Queue, n int, within time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rdb := q.Client()
	seen := make(map[string]bool, n)
	lags := make([]time.Duration, 0, n)
	for last := "0"; len(seen) < n; {
		streams, err := rdb.XRead(ctx, &redis.XReadArgs{
			Streams: []string{q.EventsKey(0), last}, Count: 1000, Block: time.Second,
		}).Result()
		if err == redis.Nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%d of %d timeouts seen: %w", len(seen), n, err)
		}
		now, err := rdb.Time(ctx).Result()
		if err != nil {
			return nil, err
		}
		for _, entry := range streams[0].Messages {
			last = entry.ID
			for _, e := range events.In(0, entry) {
				if e.Kind != "task_timed_out" {
					continue
				}
				if seen[e.TaskID] {
					return nil, fmt.Errorf("task %s timed out twice", e.TaskID)
				}
				seen[e.TaskID] = true
				due, err := strconv.ParseInt(e.Fields["deadline_at"], 10, 64)
				if err != nil {
					return nil, err
				}
				lag := now.Sub(time.UnixMilli(due))
				if lag <= 0 {
					return nil, fmt.Errorf("task %s timed out %v before its deadline", e.TaskID, -lag)
				}
				lags = append(lags, lag)
			}
		}
	}
	return lags, nil
}
