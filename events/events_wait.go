package events

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

const (
	// blockFor bounds one blocking read, so that one that is left behind ends soon.
	blockFor = time.Second
	// lookEvery is how often streams are looked at that cannot be blocked on together.
	lookEvery = 100 * time.Millisecond
)

// awaitEvents returns when there may be events behind one of the places, and after
// limit or a little sooner. Whoever reads then sees what there is: an error of this
// wait is not told, the read meets it too.
func awaitEvents(ctx context.Context, q *queue.Queue, places []place, limit time.Duration) error {
	limit = min(limit, blockFor)
	streams := make([]string, 2*len(places))
	for p, at := range places {
		streams[p], streams[len(places)+p] = q.EventsKey(p), at.id.String()
	}
	// In a cluster no command reads streams of several slots, and a blocked read cannot
	// be called back: with one a partition, each event would leave the others blocked,
	// each on a connection.
	_, cluster := q.Engine().Client().(*redis.ClusterClient)
	if _, ring := q.Engine().Client().(*redis.Ring); (cluster || ring) && len(places) > 1 {
		return pause(ctx, min(limit, lookEvery))
	}
	came := make(chan error, 1)
	go func() {
		// A block of 0 would be for ever.
		came <- q.Engine().Client().XRead(ctx, &redis.XReadArgs{Streams: streams, Count: 1, Block: max(limit, time.Millisecond)}).Err()
	}()
	select {
	case err := <-came:
		if err != nil && err != redis.Nil && ctx.Err() == nil {
			return pause(ctx, min(limit, lookEvery)) // refused or cut off: no hot loop
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// pause waits, or returns ctx's cause.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
