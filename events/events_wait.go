package events

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

const (
	// blockFor is the maximum time of a blocking read, so that an abandoned one ends soon.
	blockFor = time.Second
	// lookEvery is how often streams are polled if one command cannot block on all of them.
	lookEvery = 100 * time.Millisecond
)

// awaitEvents returns when there may be events behind one of the places, and at the latest after
// limit. It does not return an error of Redis: the read that follows will get it too.
func awaitEvents(ctx context.Context, q *queue.Queue, places []place, limit time.Duration) error {
	limit = min(limit, blockFor)
	streams := make([]string, 2*len(places))
	for p, at := range places {
		streams[p], streams[len(places)+p] = q.EventsKey(p), at.id.String()
	}
	// In a cluster no command reads streams of several slots. One blocking read for each partition
	// is no solution: a blocked read cannot be cancelled, so each event would leave the reads of the
	// other partitions blocked, each on a connection.
	_, cluster := q.Engine().Client().(*redis.ClusterClient)
	if _, ring := q.Engine().Client().(*redis.Ring); (cluster || ring) && len(places) > 1 {
		return pause(ctx, min(limit, lookEvery))
	}
	came := make(chan error, 1)
	go func() {
		// A block of 0 would have no limit.
		came <- q.Engine().Client().XRead(ctx, &redis.XReadArgs{Streams: streams, Count: 1, Block: max(limit, time.Millisecond)}).Err()
	}()
	select {
	case err := <-came:
		if err != nil && err != redis.Nil && ctx.Err() == nil {
			pause(ctx, min(limit, lookEvery)) // refused or disconnected: do not retry at once
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return q.Engine().InVain(ctx)
	}
	return nil
}

// pause waits for d. It returns the cause of ctx if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
