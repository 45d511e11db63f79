package events

import (
	"context"
	"slices"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Recent returns the events of the newest n entries of each partition's stream, 1 to 1,000, in the
// order of their instants. An entry contains all events of one call.
func Recent(ctx context.Context, q *queue.Queue, n int) ([]Event, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("recent events", "", err)
	}
	if n < 1 || n > 1000 {
		return nil, refusal.Failed("recent events", "", refusal.Invalid("n", "%d must be 1 to 1000", n))
	}
	var events []Event
	for p := range q.Partitions() {
		if err := q.Engine().CheckVersion(ctx, p); err != nil {
			return nil, refusal.Failed("recent events", "", err)
		}
		entries, err := q.Engine().Client().XRevRangeN(ctx, q.EventsKey(p), "+", "-", int64(n)).Result()
		if err != nil {
			return nil, refusal.Failed("recent events", "", q.Engine().Unread(ctx, p, err))
		}
		for _, entry := range slices.Backward(entries) {
			events = append(events, In(p, entry)...)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.At.Compare(b.At) })
	return events, nil
}
